import { operationsOf } from '../../server/admin/deck-site.ts'
import { hostOperations } from '../../server/admin/host-site.ts'
import { fake } from './fake.ts'
import type { Mount } from '../../server/api/openapi.ts'

/** @returns the operations of the API as a table of the manual */
export function callsTable (): string {
  return tableOf(operationsOf(fake({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({})))
}

/** @returns the same of those that a host has itself */
export function hostCallsTable (): string {
  return tableOf(hostOperations(fake({ apps: {}, access: {}, now: Date.now }), () => ({})))
}

function tableOf (mounts: Mount[]) {
  const rows = mounts.flatMap(({ base, groups }) =>
    Object.values(groups).flatMap(({ resources }) =>
      Object.entries(resources).flatMap(([path, resource]) =>
        Object.entries(resource).map(([method, { summary, role, byToken }]) => {
          return `| \`${method} ${base === '/' ? '' : base}${path.replace(/:(\w+)/g, '{$1}')}\` | ${summary}. | ${
            role ?? 'anyone'
          }${byToken ? ', by a token' : ''} |`
        })
      )
    )
  )
  return ['| call | does | needs |', '| --- | --- | --- |', ...rows, ''].join('\n')
}
