"""PaddleNLP: transformers of two layers over a vocabulary of a hundred words."""
import inputs

ABSENT = """filelock psutil tokenizers datasets sentencepiece multiprocess dill rich visualdl paddle2onnx seqeval rarfile uvicorn fastapi typer huggingface_hub
aistudio_sdk tool_helpers safetensors jieba Flask_Babel flask_babel colorlog fastsafetensors tiktoken protobuf onnx sklearn pandas
prettytable pydantic starlette"""


def load():
    import paddlenlp.transformers  # noqa: F401


SMALL = dict(vocab_size=100, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
             max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def model(name, model_class="Model", sequence=8, base=SMALL, **more):
    def make():
        from paddlenlp import transformers
        config = getattr(transformers, name + "Config")(**{**base, **more})
        return getattr(transformers, name + model_class)(config), [inputs.ids(2, sequence, below=100)]
    return make


MODELS = {
    "Bert": model("Bert"), "BertClassifier": model("Bert", "ForSequenceClassification"), "Ernie": model("Ernie"),
    "Roberta": model("Roberta"), "Albert": model("Albert", embedding_size=8), "Electra": model("Electra", embedding_size=8),
    "DistilBert": model("DistilBert"), "GPT": model("GPT"), "RoFormer": model("RoFormer", embedding_size=16),
    "MPNet": model("MPNet"), "NeZha": model("NeZha"), "TinyBert": model("TinyBert"), "SqueezeBert": model("SqueezeBert",
                                                                                                          num_attention_heads=4),
    "FNet": model("FNet"), "MegatronBert": model("MegatronBert"), "ConvBert": model("ConvBert", embedding_size=16),
    "RemBert": model("RemBert", input_embedding_size=8), "LayoutLM": model("LayoutLM"),
    "XLNet": model("XLNet", base=dict(vocab_size=100, d_model=16, n_layer=2, n_head=2, d_inner=32, dropout=0.0, mem_len=None,
                                      classifier_dropout=0.0)),
    "Bart": model("Bart", base=dict(vocab_size=100, max_position_embeddings=40, encoder_layers=1, decoder_layers=1, d_model=16,
                                    encoder_ffn_dim=32, decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2,
                                    dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)),
}
