import { asset, Fatal } from 'servo-flow'

/** Made by worker.py, which asks for the work of the queue `python`. */
export const scores = asset('scores', {
  queue: 'python',
  retry: 2,
  run() {
    throw new Fatal('scores is made by worker.py and not here')
  },
})

/** Made here, once there are scores. */
export const ranking = asset('ranking', {
  deps: [scores],
  run: () => 'the best first',
})
