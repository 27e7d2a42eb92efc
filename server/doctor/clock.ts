import { asRoot, command, finding, type Check } from './finding.ts'

const TOLERANCE_MS = 60_000

/** whether the clock is right, by which deploys are judged and jobs run */
export const checkClock: Check = ({ now, machine: { isClockSynchronized, isContainer }, running, user }) => {
  const ahead = running?.newestEventAt ? running.newestEventAt - now : 0
  const why = 'Times in the history, jobs by the clock and the lifetimes of tokens go by it.'
  const mend = isContainer ? [] : [command(asRoot(user, 'timedatectl set-ntp true'))]
  if (ahead > TOLERANCE_MS)
    return [
      finding('clock', 'error',
        `The clock was set back: the newest event of the history is ${Math.round(ahead / 60_000)} minutes ahead of it`,
        why, mend)
    ]
  if (isClockSynchronized === null)
    return [finding('clock', 'unknown', 'Whether the clock is synchronized is not known here')]
  return [
    isClockSynchronized
      ? finding('clock', 'ok', 'The clock is synchronized')
      : finding('clock', 'warning', 'The clock is not synchronized', why, mend)
  ]
}
