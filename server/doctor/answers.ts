import { formatPercent } from '../../public/format.ts'
import { command, finding, type Check } from './finding.ts'
import type { Running } from './facts.ts'

/** Fewer say little of a release. */
const LEAST_REQUESTS = 20
const HALF = 0.5

/** whether the release that runs answers mostly by 5xx, and since which one that is so */
export const checkAnswers: Check = ({ running, config: { cwd } }) => {
  if (!running) return []
  const known = running.answers.slice(0, running.answers.findIndex(({ release }) => release === running.release) + 1)
  const now = known.at(-1)
  if (!now) return []
  if (!isFailing(now)) return [finding('answers', 'ok', shareText(now))]
  const good = known.findLast((each) => !isFailing(each))
  const first = good ? known[known.indexOf(good) + 1].release : `${known[0].release} or before`
  return [
    finding('answers', 'error', `${shareText(now)}; that began with ${first}`,
      good ? `${shareText(good)}.` : 'No release before it is known to have answered better.', good
      ? [command(`clusterdeck rollback ${good.release} --wait`, cwd)]
      : [command('clusterdeck logs', cwd), command('clusterdeck releases', cwd)])
  ]
}

/** Tells whether it answers mostly by 5xx */
export function isFailing ({ requests, failed }: Running['answers'][number]): boolean {
  return requests >= LEAST_REQUESTS && failed >= HALF * requests
}

function shareText ({ release, requests, failed }: Running['answers'][number]) {
  return `${release} answered ${formatPercent(failed / requests * 100)} of its last ${requests} requests by 5xx`
}
