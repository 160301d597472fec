"""core.AnalysisConfig and create_paddle_predictor: paddle.inference under the older names of Paddle 2.0's fluid.core."""
from ..inference import Config as AnalysisConfig, Predictor

__all__ = ["AnalysisConfig", "AnalysisPredictor", "create_paddle_predictor"]


class AnalysisPredictor(Predictor):
    """A predictor with the methods of 2.0 beside those of paddle.inference."""

    get_input_tensor, get_output_tensor = Predictor.get_input_handle, Predictor.get_output_handle

    def get_input_tensor_shape(self):
        """name → the shape that each input has now; [0] before it has data."""
        return {name: self.get_input_handle(name).shape() for name in self.get_input_names()}

    def zero_copy_run(self):
        """Runs the model on what the handles hold."""
        self.run()


def create_paddle_predictor(config):
    """The predictor of an AnalysisConfig."""
    return AnalysisPredictor(config)
