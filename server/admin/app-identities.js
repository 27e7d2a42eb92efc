/** @typedef {ReturnType<typeof createAppIdentities>} AppIdentities */

/**
 * A role for some apps of a host is for these very apps: where one is removed, the next one of its name is another. So tokens, links and sessions
 * keep the identity of each app behind its name.
 * @param {Pick<import('../api/apps.js').Apps, 'identity'> | null} apps  null: of a deck that is alone, where no role is for some apps
 */
export function createAppIdentities (apps) {
  return {
    /** @template {{ apps?: readonly string[] | null }} Holder @param {Holder} holder @returns {Holder} as it is kept */
    kept: (holder) => withApps(holder, (name) => `${name} ${apps?.identity(name) ?? ''}`.trim()),

    /** @template {{ apps?: readonly string[] | null }} Holder @param {Holder} holder  as it is kept @returns {Holder} an app that is gone has a name that no app can have */
    named: (holder) => withApps(holder, (app) => {
      const [name, identity = ''] = app.split(' ')
      return apps?.identity(name) === identity ? name : `${name} (deleted)`
    })
  }
}

/** @template {{ apps?: readonly string[] | null }} Holder @param {Holder} holder @param {(app: string) => string} change @returns {Holder} */
function withApps (holder, change) {
  return holder.apps ? { ...holder, apps: holder.apps.map(change) } : holder
}
