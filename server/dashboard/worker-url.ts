/** `at`: a time at which it lived; without one, the live worker of this id @returns of its page */
export function workerUrlOf (worker: number, at?: string): string {
  return `/workers/${worker}${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`
}
