import { formatAgo, formatDuration, formatLatency, formatRate } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { createTools } from './context.js'
import { namesDeck } from './deck-options.js'
import { findMaster } from './find-master.js'
import { callHost, findHost } from './host.js'
import { formatTable, jsonText } from './output.js'
import { findTargets } from './targets.js'

/** @typedef {import('./commands.js').Options} Options */
/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('../api/host-fleet.js').HostFleet} HostFleet */

/** What findMaster() says of a folder that is of no app. */
const NO_APP_HERE = ['usage', 'no-master']

/**
 * Finds the app whose fleet is meant: the one that --app names, that of this folder, or the only one. Where there are several and
 * none is named, `fleet status` prints all hosts with all apps.
 * @param {Options} options @param {string | undefined} action @param {Terminal} terminal
 * @returns {Promise<Options | null>} null: that is done
 * @throws {DeckError} usage, no-master, no-fleet, fleet-away
 */
export async function fleetOptions (options, action = 'status', terminal) {
  const { env, cwd } = terminal
  const { app, ...others } = options
  if (app !== undefined && others.name === undefined && others.dataDir === undefined) return { ...others, ...await placeOf(app, options, terminal) }
  if (namesDeck(options, env)) return options
  try {
    await findMaster(options, { env, cwd })
    return options
  } catch (error) {
    const host = findHost(env)
    if (host === null || !(error instanceof DeckError && NO_APP_HERE.includes(error.code))) throw error
    /** @type {HostFleet} */
    const fleet = await callHost(host, { env }).get('/host/fleet')
    const names = [...new Set(fleet.members.flatMap(({ apps }) => apps.map((each) => each.app)))].sort()
    const own = fleet.members.find(({ isOwn }) => isOwn)?.apps.map((each) => each.app) ?? []
    if (names.length === 1 && own.length === 1) return { ...options, ...await placeOf(own[0], options, terminal) }
    if (action !== 'status') throw new DeckError('usage', `fleet ${action}: expected --app with one of ${own.join(', ') || 'the apps of this host, which has none'}, received none`)
    const { print } = createTools(options, terminal)
    print(options.json ? jsonText(fleet) : fleetText(fleet))
    return null
  }
}

/** @param {string} app @param {Options} options @param {Terminal} terminal @returns {Promise<Options>} */
async function placeOf (app, options, { env, cwd }) {
  const url = options.url ?? env.CLUSTERDECK_URL
  if (url) return { url: `${url.replace(/\/+$/, '')}/apps/${app}` }
  const [{ place }] = await findTargets('fleet', [app], { env, cwd })
  return place
}

/** @param {HostFleet} fleet */
function fleetText ({ name, member, nats, problem, members, rollouts }) {
  const facts = [
    `fleet     ${oneLine(name)}, this is ${member}`,
    `nats      ${nats.isConnected ? `connected to ${nats.server}` : `out of reach since ${nats.since}: ${oneLine(String(nats.problem))}`}`,
    ...(problem ? [`problem   ${oneLine(problem)}`] : []),
    ...rollouts.map(({ app, id, kind, state, progress: { done, total }, reason }) => `rollout   ${oneLine(`${app}: rollout ${id} of the fleet (${kind}) ${state}: ${done} of ${total}${reason ? `; ${reason}` : ''}`)}`)
  ]
  const head = ['MEMBER', 'APP', 'HEALTH', 'READY', 'RELEASE', 'REQ/S', 'P99', 'CRASHES', 'HEARD', 'VERSION']
  return `${facts.join('\n')}\n\n${formatTable(head, members.flatMap(rowsOf), { right: [3, 5, 6, 7, 8] })}`
}

/** @param {HostFleet['members'][number]} host */
function rowsOf ({ apps, ...host }) {
  return apps.length === 0
    ? [[host.member, null, healthText(host, 'No apps'), null, null, null, null, null, formatAgo(host.ageMs), host.version]]
    : apps.map((app) => [
      host.member,
      app.app,
      healthText(host, app.health.text),
    `${app.workers.ready}/${app.workers.desired}`,
    releaseText(app),
    formatRate(app.vitals.requestsPerSecond),
    formatLatency(app.vitals.latencyP99Ms),
    app.openCrashes,
    formatAgo(host.ageMs),
    host.version
    ])
}

/** @param {Pick<HostFleet['members'][number], 'isSilent' | 'isOwn' | 'ageMs'>} host @param {string} text */
export function healthText ({ isSilent, isOwn, ageMs }, text) {
  return isSilent && !isOwn ? `silent for ${formatDuration(ageMs)}` : text
}

/** @param {Pick<HostFleet['members'][number]['apps'][number], 'release' | 'mark'>} app */
export function releaseText ({ release, mark }) {
  return mark ? `${release} (${mark.label.toLowerCase()})` : release
}
