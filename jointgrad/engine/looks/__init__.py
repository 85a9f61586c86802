"""What looks at results: a state in full, Jacobians, certificates, spot checks, second derivatives."""
