# Runs before the look at variables, in the same request: keeps callbacks of the end of a cell from running at the end of
# this request, which is no cell's. One of them shows and closes the figures of a cell that may still be running.
import sys, threading

ipython = sys.modules.get("IPython")
shell = ipython.get_ipython() if ipython else None
if shell is not None:
    events, thread = shell.events, threading.get_ident()

    def trigger(event, *args, **kwargs):
        if threading.get_ident() != thread or event != "post_execute":
            return type(events).trigger(events, event, *args, **kwargs)
        events.__dict__.pop("trigger", None)

    events.trigger = trigger
