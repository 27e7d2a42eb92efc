import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { descriptorLimit } from '../../../server/system/descriptors.ts'
import { tempFolder } from '../../support/folder.ts'

test('the limit of descriptors is that of this process', { skip: process.platform !== 'linux' }, () => {
  const file = fileURLToPath(new URL('../../../server/system/descriptors.ts', import.meta.url))
  const script = `import { descriptorLimit } from ${JSON.stringify(file)}; console.log(descriptorLimit())`
  assert.equal(
    execFileSync('/bin/sh', ['-c', 'ulimit -n 321; exec "$@"', 'sh', process.execPath, '--input-type=module', '--eval',
      script], { encoding: 'utf8' }),
    '321\n'
  )
})

test('where nobody tells there is none', () => {
  assert.equal(descriptorLimit(path.join(tempFolder(), 'none')), Infinity)
  const file = path.join(tempFolder(), 'limits')
  writeFileSync(file, 'Max open files            unlimited            unlimited            files     \n')
  assert.equal(descriptorLimit(file), Infinity)
})
