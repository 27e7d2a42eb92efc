import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { plainOptions } from '../../../build/option-list.ts'
import { fieldAt } from '../../../server/config/options.ts'
import { isPlain } from '../../../server/config/plain-values.ts'

describe('options that the bundle checks without their schema', () => {
  const VALUES = [0, 1, -1, 0.5, 2, 80, 256, 257, 3000, 65536, 2 ** 31, 1e12, '', 'max', 'auto', 'on', 'off', 'true',
    'x', 'shared', 'SIGTERM', '/health', 'no path', '25%', 'a b', '\0', true, false, null, [], ['a'], [''], [1], {}, {
    a: 'b'
  }]
  let options: ReturnType<typeof plainOptions>

  before(() => {
    options = plainOptions()
  })

  test('take nothing that the schema refuses or changes', () => {
    for (const { name, path: place, plain } of options) {
      for (const value of VALUES.filter((each) => isPlain(plain, each)))
        assert.deepEqual(fieldAt(place).safeParse(value).data, value, `${name}: ${JSON.stringify(value)}`)
    }
  })

  test('are those of most starts', () => {
    const plain = options.filter((option) => option.plain).map(({ name }) => name)
    for (const name of ['entry', 'args', 'execArgv', 'cwd', 'workers', 'dataDir', 'admin.port', 'admin.host',
      'ready.path', 'ready.timeoutMs', 'rollout.surge', 'standby']) assert.ok(plain.includes(name), name)
    for (const name of ['alerts', 'env', 'jobs', 'secrets', 'releases.git', 'ready.status'])
      assert.ok(!plain.includes(name), name)
  })
})
