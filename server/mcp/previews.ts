import { STEERING } from '../config/steering.ts'
import { DeckError } from '../errors.ts'
import { previewFacts } from '../rollouts/preview-facts.ts'
import { formatExactDuration } from '../../public/format.ts'
import { clip, headline, rolloutLine } from './texts.ts'
import type { Caller } from './caller.ts'
import type { Fields } from '../api/endpoint.ts'
import type { Preview, Setting } from '../api/shapes.ts'
import type { Status, Worker } from '../api/cluster.ts'
import type { Rollout } from '../rollouts/api.ts'
import type { CrashGroup } from '../crashes/api.ts'
import type { Notice } from '../events/api-notices.ts'

/** What an operation would do, in words, for an agent; an operation that is not here is not for agents. */
type Seen = {
  /** default: the name of the operation, and the id */
  what?: string,
  /** a line each */
  facts: string[],
  /** fields of the body that may mean something else by the time of the confirmation */
  pinned?: Fields,
  /** what of a deploy or a rollback has to be the same still */
  fixed?: string
}
/** throws a DeckError where the operation would be refused */
type PreviewOf = (api: Caller, input: Fields) => Promise<Seen>

const ofWorker = about('/workers',
  ({ id, slot, state, release, pid }: Worker) => `Worker ${id} (slot ${slot}, ${state}, ${release}, pid ${pid})`)
const ofCrash = about('/crashes',
  (group: CrashGroup) => `Crash group ${group.id} (${group.state}, ${group.count} crashes): ${headline(group)}`)
const ofRollout = about('/rollouts', (rollout: Rollout) => {
  if (rollout.done) throw new DeckError('rollout-ended', `Rollout ${rollout.id} has ended: ${rollout.state}`)
  return `Now: ${rolloutLine(rollout)}`
})

export const PREVIEWS: Readonly<Record<string, PreviewOf>> = Object.freeze({
  startRollout: (api, input) => input.kind === 'restart' ? previewRestart(api) : previewRollout(api, input),
  deployCommit: (api, { commit, ...input }) =>
    previewRollout(api, { kind: 'deploy', ...input, ...(commit !== undefined && { git: commit }) }),
  restartWorker: ofWorker,
  killWorker: ofWorker,
  setScale: previewScale,
  ...Object.fromEntries(STEERING.map((type) => [`${type}Rollout`, ofRollout])),
  resolveCrash: ofCrash,
  muteCrash: ofCrash,
  reopenCrash: ofCrash,
  acknowledgeNotice: previewNotice,
  changeConfig: previewConfig
})

/** @returns what of it may not change until it is confirmed */
export function fixedOf ({ from, release, build, changed, files, options }: Preview): string {
  return JSON.stringify([from, release && { ...release, git: release.git && { ...release.git, branch: null } }, build,
    changed, files, options])
}

/** `text`: what there is now, at that path of the API */
function about<Thing> (path: string, text: (thing: Thing) => string): PreviewOf {
  return async (api, { id }) => ({ facts: [text(await api.get<Thing>(`${path}/${id}`))] })
}

async function previewRollout (api: Caller, order: Fields): Promise<Seen> {
  const seen = await api.change<Preview>({ method: 'POST', path: '/rollouts/preview', body: order })
  if (seen.refusals.length > 0)
    throw new DeckError('not-possible',
      `This ${order.kind} would be refused: ${seen.refusals.map(({ message }) => message).join('; ')}`)
  const { release, build, from, warnings } = seen
  return { what: `a ${order.kind}${release ? ` to ${release.id}` : ''} from ${from}`, fixed: fixedOf(seen),
    facts: [...previewFacts(seen, formatExactDuration).map(({ name, value }) => `${name}: ${value}`),
      ...warnings.map((warning) => `Warning: ${warning}`)], pinned: {
      // A branch may lead to another commit by then: what is confirmed is the one that was shown.
      ...(order.git !== undefined &&
        { git: release?.git?.commit ?? order.git, guess: order.guess ?? build?.isGuess ?? false }),
      // A rollback goes where the preview said, also if another release is the last good one by then.
      ...(order.kind === 'rollback' && release && { release: release.id })
    } }
}

async function previewRestart (api: Caller): Promise<Seen> {
  const { release, desiredWorkers, rollout } = await api.get<Status>('/status')
  if (rollout) throw new DeckError('rollout-running', `rollout ${rollout.id} (${rollout.kind}) is running`)
  return { what: `a restart of all workers of ${release.id}`,
    facts: [
      `All ${desiredWorkers} workers are replaced by new ones of the same release, slot by slot; each new one is ready before its old one drains, unless rollout.order is stop-first.`
    ] }
}

async function previewScale (api: Caller, { workers }: Fields): Promise<Seen> {
  const { desiredWorkers } = await api.get<{ desiredWorkers: number }>('/scale')
  return { what: `scaling to ${workers} workers`,
    facts: [`From ${desiredWorkers} to ${workers} workers; those that are too many drain first.`] }
}

async function previewNotice (api: Caller, { id }: Fields): Promise<Seen> {
  const { items } = await api.get<{ items: Notice[] }>('/notices')
  const found = items.find((notice) => notice.id === id)
  if (!found) throw new DeckError('not-found', `Notice ${id} does not exist, or is acknowledged already`)
  return { facts: [clip(found.message)] }
}

async function previewConfig (api: Caller, options: Fields): Promise<Seen> {
  const { items } = await api.get<{ items: Setting[] }>('/config')
  const facts = Object.entries(options).map(([name, value]) => {
    const known = items.find((each) => each.name === name)
    if (!known)
      throw new DeckError('unknown-option',
        `There is no option ${JSON.stringify(name.slice(0, 80))}: see the tool settings`)
    if (known.takesEffect !== 'now')
      throw new DeckError('not-possible',
        `${name} takes effect at the next ${known.takesEffect}: it is changed in the config file`)
    return `${name}: ${known.isSecret ? 'a secret' : JSON.stringify(known.value)} → ${
      known.isSecret ? 'another one' : JSON.stringify(value)
    } (${known.expected})`
  })
  return { what: `changing ${Object.keys(options).join(', ')}`,
    facts: [...facts, 'It lasts, also over a stop; the config file stays as it is.'] }
}
