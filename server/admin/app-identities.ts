import type { Apps } from '../host/api-apps.ts'

export type AppIdentities = ReturnType<typeof createAppIdentities>

/**
 * A role for some apps of a host is for these very apps: where one is removed, the next one of its name is another. So
 * tokens, links and sessions keep the identity of each app behind its name.
 * @param apps null: of a deck that is alone, where no role is for some apps
 */
export function createAppIdentities (apps: Pick<Apps, 'identity'> | null) {
  return {
    /** @returns as it is kept */
    kept: <Holder extends { apps?: readonly string[] | null }>(holder: Holder): Holder =>
      withApps(holder, (name) => `${name} ${apps?.identity(name) ?? ''}`.trim()),

    /** `holder`: as it is kept. Returns an app that is gone has a name that no app can have. */
    named: <Holder extends { apps?: readonly string[] | null }>(holder: Holder): Holder =>
      withApps(holder, (app) => {
        const [name, identity = ''] = app.split(' ')
        return apps?.identity(name) === identity ? name : `${name} (deleted)`
      })
  }
}

function withApps<Holder extends { apps?: readonly string[] | null }> (holder: Holder,
  change: (app: string) => string): Holder
{
  return holder.apps ? { ...holder, apps: holder.apps.map(change) } : holder
}
