import { ABORTED, STATUS_CLASSES } from '../../workers/protocol.ts'
import type { Answers, Count } from '../lifecycle/rollout/guard.ts'

const FAILED = STATUS_CLASSES.indexOf('5xx')
const RECENT_S = 300
/** So many answers at least are the last ones. */
const LAST = 3
const MAX_RELEASES = 10

/** `statuses`: by STATUS_CLASSES; null: nobody counts them. A request that was aborted has no answer. */
export function countOf (statuses: readonly number[] | null): Count {
  const requests = (statuses ?? []).reduce((all, value, index) => index === ABORTED ? all : all + value, 0)
  return { requests, failed: statuses?.[FAILED] ?? 0 }
}

/** How many requests each release has answered, and how many of them by 5xx, since this master began. */
export function createAnswers () {
  /** `news`: since it was counted last; `seconds`: the last five minutes of its answers, oldest first */
  const releases: Map<string, { news: Count, seconds: (Count & { second: number })[] }> = new Map()

  return {
    /** `second`: since the epoch */
    add (second: number, release: string, count: Count) {
      if (count.requests === 0) return
      const known = releases.get(release) ?? { news: newCount(), seconds: [] }
      releases.set(release, known)
      if (releases.size > MAX_RELEASES) releases.delete(releases.keys().next().value ?? '')
      const { news, seconds } = known
      addTo(news, count)
      if (seconds.at(-1)?.second !== second) seconds.push({ second, ...newCount() })
      addTo(seconds[seconds.length - 1], count)
      while (seconds[0].second <= second - RECENT_S) seconds.shift()
    },

    /** `from`: the release before. Tells its last five minutes, and of the other what came since this was asked. */
    count (release: string, from: string): Answers {
      const known = releases.get(release)
      const after = known?.news ?? newCount()
      if (known) known.news = newCount()
      return { after, before: recentOf(from), last: recentOf(from, LAST) }
    },

    /** @returns of the last five minutes of each, the newest release last */
    recent: (): (Count & { release: string })[] =>
      [...releases.keys()].map((release) => ({ release, ...recentOf(release) }))
  }

  /** `enough`: requests, of the newest seconds */
  function recentOf (release: string, enough: number = Infinity): Count {
    const sum = newCount()
    for (const second of releases.get(release)?.seconds.toReversed() ?? [])
      if (sum.requests < enough) addTo(sum, second)
    return sum
  }
}

function newCount (): Count {
  return { requests: 0, failed: 0 }
}

export function addTo (sum: Count, { requests, failed }: Count) {
  sum.requests += requests
  sum.failed += failed
}
