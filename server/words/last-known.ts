import { count } from './health.ts'

/** What a host of the fleet that is silent now had said when it was last heard, for the history and the pages. */
type KnownApp = { app: string, release: string | null, workers: { ready: number, desired: number }, state: string,
  turnOf: string | null }

const MOST_APPS = 3

/** @returns a sentence without its full stop */
export function lastKnownText (apps: readonly KnownApp[]): string {
  if (apps.length === 0) return 'No app ran there'
  const texts = apps.slice(0, MOST_APPS).map(({ app, release, workers, state, turnOf }) => {
    const what = state === 'stopped' ? 'stopped' : `${workers.ready} of ${count(workers.desired, 'worker')} ready`
    return `${app} ${release === null ? '' : `${release} `}(${what}${
      turnOf === null ? '' : ', in its turn of a rollout'
    })`
  })
  const more = apps.length - MOST_APPS
  return `When last heard, it ran ${texts.join(', ')}${more > 0 ? ` and ${count(more, 'other app')}` : ''}`
}
