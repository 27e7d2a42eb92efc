import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Imports that are made before the first line of a module runs. */
const STATIC = /^(?:import|export)\s(?!type\b)(?:[^'"]*?\sfrom\s+)?'([^']+)'$/gm

for (const [entry, allowed] of [['server/host/master.ts', ['croner', 'zod']], ['server/host/foreground.ts', ['croner',
  'zod']], ['server/host/user-host.ts', ['croner', 'zod']], ['server/keeper/keeper.ts', []], ['workers/boot.ts',
  []]] as const)
{
  test(`${entry} loads no package before the first worker starts beside ${allowed.length > 0 ? allowed.join(', ') : 'those of Node'}`, () => {
    assert.deepEqual(packagesOf(entry), allowed)
  })
}

test('a master loads nothing of the API and the pages before its first worker starts but what its port is told, who asks there, and what answers probes', () => {
  const { files } = reachedFrom('server/host/master.ts')
  const early = [...files].filter((file) => /^server\/(api|dashboard|doctor|fleet)\//.test(file))
  assert.deepEqual(early.sort(), ['server/api/base-path.ts', 'server/api/body.ts', 'server/api/roles.ts',
    'server/dashboard/form-of-page.ts'])
})

function packagesOf (entry: string) {
  return [...reachedFrom(entry).packages].sort()
}

/** `entry`: from the root of the repository */
function reachedFrom (entry: string) {
  const [files, packages] = [new Set([entry]), new Set()]
  for (const file of files) {
    for (const [, name] of readFileSync(ROOT + file, 'utf8').matchAll(STATIC)) {
      if (name.startsWith('.')) files.add(path.posix.join(path.posix.dirname(file), name))
      else if (!name.startsWith('node:')) packages.add(name)
    }
  }
  return { files, packages }
}
