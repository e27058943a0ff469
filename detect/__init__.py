"""How strongly does each detector believe that each example was seen."""
