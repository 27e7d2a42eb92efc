import type { Supervisor } from '../cluster/supervisor.ts'
import type { Turns } from '../cluster/rollout-turn.ts'
import type { Release } from '../lifecycle/state.ts'

/**
 * Starts the workers of an app: at once, or when its secrets are known and it is its turn among the apps of its host.
 * Those that a master before has left serve meanwhile. `secrets`: resolves once they are known, which they are
 * not yet, with the release that they are of.
 */
export function startInTurn (supervisor: Supervisor, { turns }: { turns: Turns | null },
  { secrets = null, hasHook = false, ...order }: Parameters<Supervisor['start']>[0] & {
    secrets?: Promise<Release> | null
  })
{
  const awaitsTurn = secrets
    ? 'the secrets of this app could not be read yet'
    : turns && 'other apps of this host start first'
  supervisor.start({ ...order, hasHook: hasHook && !secrets, awaitsTurn })
  if (awaitsTurn !== null) awaitTurn()

  async function awaitTurn () {
    const release = await secrets
    await turns?.take(Promise.race([supervisor.running, supervisor.startBlocked, supervisor.finished]))
    supervisor.takeTurn(release ? { release, hasHook } : {})
  }
}
