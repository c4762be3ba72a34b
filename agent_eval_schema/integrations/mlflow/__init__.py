"""MLflow: prepare and evaluate, scorers, datasets, tracking stores."""
