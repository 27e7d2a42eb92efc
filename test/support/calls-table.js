import { operationsOf } from '../../server/admin/deck-site.js'
import { hostOperations } from '../../server/admin/host-site.js'

/** @returns {string} the operations of the API as a table of the manual */
export function callsTable () {
  return tableOf(operationsOf(/** @type {any} */ ({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({})))
}

/** @returns {string} the same of those that a host has itself */
export function hostCallsTable () {
  return tableOf(hostOperations(/** @type {any} */ ({ apps: {}, access: {}, now: Date.now }), () => ({})))
}

/** @param {import('../../server/api/openapi.js').Mount[]} mounts */
function tableOf (mounts) {
  const rows = mounts.flatMap(({ base, groups }) => Object.values(groups).flatMap(({ resources }) => Object.entries(resources).flatMap(([path, resource]) => Object.entries(resource).map(([method, { summary, role, byToken }]) => {
    return `| \`${method} ${base === '/' ? '' : base}${path.replace(/:(\w+)/g, '{$1}')}\` | ${summary}. | ${role ?? 'anyone'}${byToken ? ', by a token' : ''} |`
  }))))
  return ['| call | does | needs |', '| --- | --- | --- |', ...rows, ''].join('\n')
}
