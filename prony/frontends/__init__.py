"""Front ends: other tools' command lines and scripts, translated into the laboratory's own load."""
