"""The study of the objective: is it kept, and what does it cost?"""
