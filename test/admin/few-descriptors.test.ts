import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'

const LOADS = path.resolve(import.meta.dirname, '../fixtures/loads-the-site.js')

test('what is behind the port loads while strangers hold nearly all descriptors', {
  skip: process.platform === 'win32'
}, () => {
  const { status, stderr } = spawnSync('/bin/sh', ['-c', 'ulimit -n 200; exec "$@"', 'sh', process.execPath, LOADS,
    '16'], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})
