"""Trained models: the model file, inference on rows and codes, ONNX export, the model card."""
