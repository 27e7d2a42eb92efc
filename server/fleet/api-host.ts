import { operation, type Resource } from '../api/endpoint.ts'
import { HOST_FLEET, type HostFleet } from './api-answers.ts'
import { groupsOf, marksOf } from './api-builds.ts'
import { fleetOf, forgetOperation, summaryOf } from './api.ts'
import { mayUse, type Person } from '../api/roles.ts'
import type { Fleet, HostsStatus } from './fleet.ts'

/** The fleet as a host sees it: all hosts, and the apps of each. Calls about one app are below the path of that app. */
export type FleetHost = { fleet: () => Fleet | null, joinsFleet: boolean }
export type FleetHostMember = HostFleet['members'][number]
export type FleetHostApp = FleetHostMember['apps'][number]

export function hostFleetResources ({ apps }: { apps: FleetHost }): Record<string, Resource> {
  return {
    '/host/fleet': {
      GET: operation({ name: 'getHostFleet', summary: 'Returns all hosts of the fleet with their apps',
        description: 'A role for some apps sees these alone, and the hosts that have one of them.', role: 'viewer',
        cli: 'clusterdeck fleet', problems: ['no-fleet', 'fleet-away'], answer: HOST_FLEET,
        handle: async ({ auth }) => {
          const fleet = fleetOfHost(apps)
          return { body: hostFleetFor(await fleet.look(), fleet, auth) }
        } })
    },
    '/host/fleet/members/:member': {
      DELETE: forgetOperation({ name: 'forgetHost', summary: 'Forgets a host of the fleet that will not come back' },
        () => fleetOfHost(apps))
    }
  }
}

/** @throws {DeckError} no-fleet, fleet-away */
export function fleetOfHost (apps: FleetHost) {
  return fleetOf({ fleet: apps.fleet(), joinsFleet: apps.joinsFleet })
}

/** @returns what this person may see */
export function hostFleetFor ({ members, ...status }: HostsStatus, fleet: Pick<Fleet, 'of'>,
  person: Pick<Person, 'apps'>): HostFleet
{
  const visible = members.map((host) => ({ ...host, apps: host.apps.filter(({ app }) => mayUse(person, app)) })).filter(
    ({ apps }) => !person.apps || apps.length > 0
  )
  const all = visible.flatMap(({ apps, ...host }) => apps.map((app) => ({ ...host, ...app })))
  const byApp = new Map(groupsOf(all, ({ app }) => app).map((ofApp) => {
    const [{ app }] = ofApp
    const rollout = fleet.of(app)?.status().rollout ?? null
    return [app, { rollout, marks: marksOf(ofApp, rollout) }]
  }))
  return { ...status,
    members: visible.map((host) => ({ ...host,
      apps: host.apps.map((app) => ({ ...app, mark: byApp.get(app.app)?.marks.get(host.member) ?? null })).sort((one,
        other) => one.app < other.app ? -1 : 1
      ) })
    ), rollouts: [...byApp.keys()].sort().flatMap((app) => {
      const rollout = byApp.get(app)?.rollout
      return rollout ? [summaryOf(rollout)] : []
    }) }
}
