import { oneLine } from '../system/one-line.ts'
import { createApiClient } from '../cli/api-client.ts'
import { createTools } from '../cli/context.ts'
import { namesDeck } from '../cli/deck-options.ts'
import { findMasterOrHost } from '../cli/find-master.ts'
import { progressText } from './progress.ts'
import { connectionFacts, fleetTable } from './cli-table.ts'
import { findTargets } from '../cli/known-apps.ts'
import { ANSWER_WITHIN_MS } from '../cli/reachable.ts'
import { misuse } from '../cli/usage.ts'
import type { Options } from '../cli/commands.ts'
import type { Terminal } from '../cli/program.ts'
import type { HostFleet } from './api-answers.ts'

/**
 * Finds the app whose fleet is meant: the one that --app names, that of this folder, or the only one. Where there are
 * several and none is named, `fleet status` prints all hosts with all apps. Returns null: that is done.
 * @throws {DeckError} usage, no-master, no-fleet, fleet-away
 */
export async function fleetOptions (options: Options, action: string | undefined = 'status',
  terminal: Terminal): Promise<Options | null>
{
  const { env, cwd } = terminal
  const { app, ...others } = options
  if (app !== undefined && others.name === undefined && others.dataDir === undefined)
    return { ...others, ...await placeOf(app, options, terminal) }
  if (namesDeck(options, env)) return options
  const host = await findMasterOrHost(options, { env, cwd }, ['no-master'])
  if (!host.below) return options
  const fleet: HostFleet = await createApiClient(host, { timeoutMs: ANSWER_WITHIN_MS }).get('/fleet')
  const names = new Set(fleet.members.flatMap(({ apps }) => apps.map((each) => each.app)))
  const own = fleet.members.find(({ isOwn }) => isOwn)?.apps.map((each) => each.app) ?? []
  if (names.size === 1 && own.length === 1) return { ...options, ...await placeOf(own[0], options, terminal) }
  if (action !== 'status')
    throw misuse(`fleet ${action}`, `--app with one of ${own.join(', ') || 'the apps of this host, which has none'}`)
  const { answer } = createTools(options, terminal)
  answer(fleet, () => fleetText(fleet))
  return null
}

async function placeOf (app: string, options: Options, { env, cwd }: Terminal): Promise<Options> {
  const url = options.url ?? env.CLUSTERDECK_URL
  if (url) return { url: `${url.replace(/\/+$/, '')}/apps/${app}` }
  const [{ place }] = await findTargets('fleet', [app], { env, cwd })
  return place
}

function fleetText ({ name, member, nats, problem, members, rollouts }: HostFleet) {
  const facts = [`fleet     ${oneLine(name)}, this is ${member}`, ...connectionFacts({ nats, problem }),
    ...rollouts.map(({ app, id, kind, state, progress, reason }) =>
      `rollout   ${
        oneLine(
          `${app}: rollout ${id} of the fleet (${kind}) ${state}: ${progressText(state, progress)}${
            reason ? `; ${reason}` : ''
          }`
        )
      }`
    )]
  const rows = members.flatMap(({ apps, ...host }) => (apps.length === 0 ? [null] : apps).map((app) => ({ host, app })))
  return `${facts.join('\n')}\n\n${fleetTable(rows, { hasApps: true })}`
}
