"""Checks that come before any result: may this experiment be believed?"""
