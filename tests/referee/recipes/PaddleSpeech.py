"""PaddleSpeech: acoustic models, vocoders, speakers, keywords."""
import importlib

import inputs

ABSENT = """librosa soundfile visualdl yacs kaldiio jsonlines sentencepiece g2p_en jieba pypinyin paddlenlp resampy editdistance
textgrid inflect h5py loguru sacrebleu praatio timer nara_wpe webrtcvad onnxruntime parallel paddleaudio ctcdecoders swig_decoders
numba matplotlib paddlespeech_ctcdecoders paddlespeech_feat typeguard sklearn pandas opencc g2pM dtaidistance jieba prettytable
pattern_singleton websockets fastapi uvicorn starlette pyworld""" + " audiodsp hyperpyyaml mock nltk python_speech_features"


def load():
    import paddlespeech.t2s.modules  # noqa: F401


def net(module, name, *shapes, **more):
    def make():
        found = getattr(importlib.import_module(f"paddlespeech.{module}"), name)
        return found(**more), [inputs.floats(*shape) for shape in shapes], {"fixed": True}
    return make


def keywords():
    models = importlib.import_module("paddlespeech.kws.models.mdtc")
    backbone = models.MDTC(stack_num=2, stack_size=2, in_channels=8, res_channels=8, kernel_size=3)
    return models.KWSModel(backbone, 3), [inputs.floats(1, 60, 8)], {"fixed": True}


MODELS = {
    "HiFiGAN": net("t2s.models.hifigan.hifigan", "HiFiGANGenerator", (1, 8, 6), in_channels=8, channels=16,
                   upsample_scales=(2, 2), upsample_kernel_sizes=(4, 4)),
    "HiFiGANPeriod": net("t2s.models.hifigan.hifigan", "HiFiGANPeriodDiscriminator", (1, 1, 90), channels=4,
                         max_downsample_channels=16),
    "MelGAN": net("t2s.models.melgan.melgan", "MelGANGenerator", (1, 8, 6), in_channels=8, channels=16, upsample_scales=[2, 2],
                  stacks=1),
    "MelGANDiscriminator": net("t2s.models.melgan.melgan", "MelGANDiscriminator", (1, 1, 512), channels=4,
                               max_downsample_channels=16),
    "ParallelWaveGAN": net("t2s.models.parallel_wavegan.parallel_wavegan", "PWGGenerator", (1, 1, 16), (1, 8, 8), layers=4,
                           stacks=2, residual_channels=8, gate_channels=8, skip_channels=8, aux_channels=8,
                           upsample_scales=[2, 2]),
    "PWGDiscriminator": net("t2s.models.parallel_wavegan.parallel_wavegan", "PWGDiscriminator", (1, 1, 40), layers=4,
                            conv_channels=8),
    "MDTC": keywords,
    "EcapaTdnn": net("vector.models.ecapa_tdnn", "EcapaTdnn", (2, 8, 40), input_size=8, lin_neurons=8, channels=[16, 16, 16, 16, 48],
                     attention_channels=8, res2net_scale=4, se_channels=8),
    "CNN6": net("cls.models.panns.panns", "CNN6", (1, 1, 32, 64)),
    "WaveRNNUpsample": net("t2s.models.wavernn.wavernn", "UpsampleNetwork", (1, 8, 9), aux_channels=8, upsample_scales=[2, 2],
                           compute_dims=8, res_blocks=2, res_out_dims=8),
    "SpeedySpeechDecoder": net("t2s.models.speedyspeech.speedyspeech", "SpeedySpeechDecoder", (1, 10, 16), hidden_size=16,
                               output_size=8, dilations=[1, 3]),
}
