"""Google Customer Engagement Suite: golden CSV and Evaluation JSON."""
