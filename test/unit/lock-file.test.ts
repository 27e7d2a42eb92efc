import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'))

test('npm compiles nothing: the lock file says so of better-sqlite3, which npm would see to need it', () => {
  // npm leaves this line out when it writes the file: put it in again.
  assert.equal(packages['node_modules/better-sqlite3'].gypfile, false)
  const compiled = Object.entries<{ hasInstallScript?: boolean }>(packages).filter(([, { hasInstallScript }]) =>
    hasInstallScript
  ).map(([place]) => place)
  // koffi has binaries as packages of their own.
  assert.deepEqual(compiled.filter((place) => !packages[place].dev), ['node_modules/koffi'])
})
