import { z } from 'zod'
import { operation } from './endpoint.js'
import { FLEET, FLEET_ROLLOUT_SUMMARY, MEMBER } from './fleet-answers.js'
import { groupsOf, marksOf } from './fleet-builds.js'
import { fleetOf, forgetOperation, summaryOf } from './fleet.js'
import { mayUse } from './roles.js'

/**
 * The fleet as a host sees it: all hosts, and the apps of each. Calls about one app are below the path of that app.
 * @typedef {import('../fleet/presence.js').Host} Host
 * @typedef {import('../fleet/presence.js').Member} Member
 * @typedef {import('../fleet/fleet.js').HostsStatus} HostsStatus
 * @typedef {{ fleet: () => import('../fleet/fleet.js').Fleet | null, joinsFleet: boolean }} FleetHost
 * @typedef {z.infer<typeof HOST_FLEET>} HostFleet
 * @typedef {HostFleet['members'][number]} FleetHostMember
 * @typedef {FleetHostMember['apps'][number]} FleetHostApp
 */

const APP = MEMBER
  .pick({ app: true, state: true, release: true, code: true, workers: true, health: true, vitals: true, openCrashes: true, unwritten: true, rollout: true, turnOf: true, seen: true, url: true, mark: true })
  .meta({ id: 'FleetHostApp' })
const HOST = MEMBER
  .pick({ member: true, home: true, boot: true, host: true, version: true, labels: true, url: true, accept: true, isSilent: true, ageMs: true, isOwn: true })
  .extend({ apps: z.array(APP).describe('sorted by name') })
  .meta({ id: 'FleetHost' })

const HOST_FLEET = FLEET.pick({ name: true, member: true, nats: true, problem: true })
  .extend({
    members: z.array(HOST).describe('all hosts, sorted by name'),
    rollouts: z.array(FLEET_ROLLOUT_SUMMARY).describe('the newest rollout of each app of this host, sorted by the name of the app')
  })
  .meta({ id: 'HostFleet' })

/**
 * @param {{ apps: FleetHost }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function hostFleetResources ({ apps }) {
  return {
    '/host/fleet': {
      GET: operation({
        name: 'getHostFleet',
        summary: 'Returns all hosts of the fleet with their apps',
        description: 'A role for some apps sees these alone, and the hosts that have one of them.',
        role: 'viewer',
        cli: 'clusterdeck fleet',
        problems: ['no-fleet', 'fleet-away'],
        answer: HOST_FLEET,
        handle: async ({ auth }) => {
          const fleet = fleetOfHost(apps)
          return { body: hostFleetFor(await fleet.look(), fleet, auth) }
        }
      })
    },
    '/host/fleet/members/:member': {
      DELETE: forgetOperation({ name: 'forgetHost', summary: 'Forgets a host of the fleet that will not come back' }, () => fleetOfHost(apps))
    }
  }
}

/** @param {FleetHost} apps @throws {DeckError} no-fleet, fleet-away */
export function fleetOfHost (apps) {
  return fleetOf({ fleet: apps.fleet(), joinsFleet: apps.joinsFleet })
}

/**
 * @param {HostsStatus} status @param {Pick<import('../fleet/fleet.js').Fleet, 'of'>} fleet @param {Pick<import('./roles.js').Person, 'apps'>} person
 * @returns {HostFleet} what this person may see
 */
export function hostFleetFor ({ members, ...status }, fleet, person) {
  const visible = members
    .map((host) => ({ ...host, apps: host.apps.filter(({ app }) => mayUse(person, app)) }))
    .filter(({ apps }) => !person.apps || apps.length > 0)
  const all = visible.flatMap(({ apps, ...host }) => apps.map((app) => ({ ...host, ...app })))
  const byApp = new Map(groupsOf(all, ({ app }) => app).map((ofApp) => {
    const [{ app }] = ofApp
    const rollout = fleet.of(app)?.status().rollout ?? null
    return [app, { rollout, marks: marksOf(ofApp, rollout) }]
  }))
  return {
    ...status,
    members: visible.map((host) => ({
      ...host,
      apps: host.apps.map((app) => ({ ...app, mark: byApp.get(app.app)?.marks.get(host.member) ?? null })).sort((one, other) => one.app < other.app ? -1 : 1)
    })),
    rollouts: [...byApp.keys()].sort().flatMap((app) => {
      const rollout = byApp.get(app)?.rollout
      return rollout ? [summaryOf(rollout)] : []
    })
  }
}
