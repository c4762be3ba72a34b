"""Google Customer Engagement Suite: golden CSV, Evaluation JSON. The public names are in `agent_eval_schema.ces`."""
