"""A worker for the queue "python": asks for work, says that it is alive, reports what came of it."""
import json, os, threading, time, urllib.error, urllib.request

SERVER, TOKEN = os.environ["SERVO_URL"], os.environ["SERVO_TOKEN"]
WORKER = f"{os.uname().nodename}-{os.getpid()}"

def post(url, token, body):
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    while True:
        try:
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            return json.load(urllib.request.urlopen(request, timeout=60))
        except urllib.error.HTTPError as problem:
            if problem.code < 500:  # nothing was recorded, and saying it again would not help
                return {"should_cancel": True, **json.load(problem)}
        except OSError:  # nobody is there
            pass
        time.sleep(1)

def make(work, stop):
    """Your code. It ends early once `stop` is set."""
    stop.wait(float(work["payload"]["labels"].get("seconds", 0)))
    return {"outcome": "SUCCEEDED", "materialization_id": os.urandom(8).hex(), "output": {"rows": 3}}

def run(work):
    task = f"{work['callback_base_url']}/api/v1/orchestration/tasks/{work['task_id']}"
    token, stop, done = [work["task_token"]], threading.Event(), threading.Event()
    if post(f"{task}/started", token[0], {"worker_id": WORKER})["should_cancel"]:
        return

    def beat():
        while not done.is_set():
            answer = post(f"{task}/heartbeat", token[0], {"worker_id": WORKER})
            token[0] = answer.get("token", token[0])
            if answer["should_cancel"]:
                stop.set()
            done.wait(work["payload"]["heartbeat_timeout_sec"] / 4)

    threading.Thread(target=beat, daemon=True).start()
    try:
        result = make(work, stop)
    except Exception as error:
        result = {"outcome": "FAILED", "error": {"category": "user", "message": repr(error), "retryable": True}}
    done.set()
    answer = post(f"{task}/completed", token[0], {"outcome": "CANCELLED"} if stop.is_set() else result)
    print(work["task_key"], "accepted" if "accepted" in answer else answer["detail"], flush=True)

while True:
    asked = {"worker_id": WORKER, "queues": ["python"], "capacity": 1, "wait_ms": 20_000}
    answer = post(f"{SERVER}/api/v1/orchestration/workers/claim", TOKEN, asked)
    if "dispatches" not in answer:
        raise SystemExit(answer["detail"])
    for work in answer["dispatches"]:
        run(work)
