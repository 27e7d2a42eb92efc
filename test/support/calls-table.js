import { operationsOf } from '../../server/admin/app.js'

/** @returns {string} the operations of the API as a table of the manual */
export function callsTable () {
  const mounts = operationsOf(/** @type {any} */ ({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({}))
  const rows = mounts.flatMap(({ base, groups }) => Object.values(groups).flatMap(({ resources }) => Object.entries(resources).flatMap(([path, resource]) => Object.entries(resource).map(([method, { summary, role, byToken }]) => {
    return `| \`${method} ${base === '/' ? '' : base}${path.replace(/:(\w+)/g, '{$1}')}\` | ${summary}. | ${role ?? 'anyone'}${byToken ? ', by a token' : ''} |`
  }))))
  return ['| call | does | needs |', '| --- | --- | --- |', ...rows, ''].join('\n')
}
