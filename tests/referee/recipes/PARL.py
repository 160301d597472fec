"""PARL: agents' networks of the examples."""
import importlib.util

import inputs

ABSENT = "pynvml gym tensorboardX visualdl zmq pyarrow cloudpickle flask psutil termcolor click grpc"


def load():
    import parl  # noqa: F401


def model(path, name, *shapes, **more):
    def make():
        spec = importlib.util.spec_from_file_location(path.replace("/", "_"), f"examples/{path}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)(**more), [inputs.floats(*shape) for shape in shapes]
    return make


OBSERVED = dict(obs_dim=6, action_dim=2)
MODELS = {
    "QuickStart": model("QuickStart/cartpole_model", "CartpoleModel", (4, 6), obs_dim=6, act_dim=2),
    "DQN": model("DQN/cartpole_model", "CartpoleModel", (4, 6), obs_dim=6, act_dim=2),
    "DQN_variant": model("DQN_variant/atari_model", "AtariModel", (2, 4, 84, 84), act_dim=3, dueling=True),
    "SAC_Actor": model("SAC/mujoco_model", "Actor", (4, 6), **OBSERVED),
    "SAC_Critic": model("SAC/mujoco_model", "Critic", (4, 6), (4, 2), **OBSERVED),
    "TD3_Actor": model("TD3/mujoco_model", "Actor", (4, 6), **OBSERVED),
    "CQL_Critic": model("CQL/mujoco_model", "Critic", (4, 6), (4, 2), **OBSERVED),
    "PPO_Actor": model("PPO/mujoco_model", "Actor", (4, 6), obs_dim=6, act_dim=2),
    "OAC_Actor": model("OAC/mujoco_model", "Actor", (4, 6), **OBSERVED),
    "DDPG_Actor": model("DDPG/mujoco_model", "Actor", (4, 6), **OBSERVED),
    "QMIX_RNN": model("QMIX/rnn_model", "RNNModel", (4, 6), (4, 64), input_shape=6, n_actions=3),
    "QMIX_Mixer": model("QMIX/qmixer_model", "QMixerModel", (2, 5, 3), (2, 5, 6), n_agents=3, state_shape=6),
}
