import { FAULTS } from '../causes.ts'
import { ALERTS } from './kinds.ts'

/** The events of which people want to be told, in groups that they choose from. */
type Topic = {
  id: string,
  label: string,
  about: string,
  /** each is `type` or `type:cause` */
  events: readonly string[],
  /** it is chosen unless somebody says otherwise */
  isProblem: boolean
}

const PROBLEMS = [{ id: 'crashes', label: 'A worker crashed in a new way',
  about: 'once for each new crash, and when one that was resolved comes back',
  events: ['crash.group-new', 'crash.group-returned'] }, { id: 'crash-loops', label: 'A worker keeps crashing',
  about: 'or can no longer be started', events: ['worker.crash-looping', 'slot.held', 'app.failed'] }, { id: 'hangs',
  label: 'A worker hangs', about: 'its event loop no longer answers', events: ['worker.unresponsive'] }, { id: 'slow',
  label: 'Requests are slow', about: 'much slower than in the last hour', events: ['route.slowed'] }, { id: 'memory',
  label: 'Memory grows', about: 'steadily, as by a leak', events: ['memory.growing'] }, { id: 'deploys-failed',
  label: 'A deploy failed', about: 'or was rolled back, or waits for you',
  events: ['rollout.failed', 'rollout.rolled-back', 'rollout.held', 'start.rolled-back', 'rollback.refused',
    'fleet.rollout-failed', 'fleet.rollout-held'] }, { id: 'jobs-failed', label: 'A job failed',
  about: 'or took too long', events: ['job.failed'] }, { id: 'hosts', label: 'A host of the fleet is silent',
  about: 'it no longer answers the others', events: ['fleet.host-silent'] }]
const OTHERS = [{ id: 'each-crash', label: 'Every crash of a worker', about: 'also one that is known',
  events: FAULTS.map((cause) => `worker.exited:${cause}`) }, { id: 'deploys', label: 'A deploy started or succeeded',
  about: 'also restarts and rollbacks', events: ['rollout.started', 'rollout.succeeded'] }, { id: 'recoveries',
  label: 'Something is well again', about: 'after a crash loop, a hang, slow requests or a failed history',
  events: ['worker.recovered', 'worker.responsive', 'route.recovered', 'history.recovered', 'secrets.read'] }, {
  id: 'changes',
  label: 'Somebody changed settings or workers',
  about: 'scale and configuration',
  events: ['scale.changed', 'config.changed']
}, { id: 'access', label: 'Access changed or was refused', about: 'tokens, and who was turned away',
  events: ['token.created', 'token.revoked', 'access.refused'] }]
const named = new Set(PROBLEMS.flatMap(({ events }) => events))

export const TOPICS: readonly Topic[] = Object.freeze([...PROBLEMS.map((topic) => ({ ...topic, isProblem: true })), {
  id: 'clusterdeck',
  label: 'clusterdeck itself has a problem',
  about: 'its master, history, secrets or fleet',
  events: ALERTS.filter((event) => !named.has(event)),
  isProblem: true
}, ...OTHERS.map((topic) => ({ ...topic, isProblem: false }))])

/** `events`: as an alert names them. Returns the topics that are in it as a whole, and what is in none of these. */
export function topicsOf (events: readonly string[]): { topics: Topic[], others: string[] } {
  const topics = TOPICS.filter((topic) => topic.events.every((event) => events.includes(event)))
  const known = new Set(topics.flatMap((topic) => topic.events))
  return { topics, others: events.filter((event) => !known.has(event)) }
}

/** `ids`: of topics. Returns null: the problems, and those of later versions too. */
export function eventsOf (ids: readonly string[], others: readonly string[]): string[] | null {
  const chosen = TOPICS.filter(({ id }) => ids.includes(id))
  if (others.length === 0 && TOPICS.every((topic) => topic.isProblem === chosen.includes(topic))) return null
  return [...new Set([...chosen.flatMap(({ events }) => events), ...others])]
}
