import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasOthers } from '../../../server/system/trust.ts'

const FILES: Record<string, string> = {
  '/etc/passwd':
    'root:x:0:0::/root:/bin/sh\noperator:x:11:0::/:/sbin/nologin\nada:x:1000:1000::/home/ada:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n\n',
  '/etc/group':
    '# groups\nroot:x:0:\nada:x:1000:\nusers:x:100:\nstaff:x:50:\ndeploy:x:2000:ada\nteam:x:2001:root,ada,bob\ngone:x:2002:carol\n'
}
const inFiles = { read: (file: string) => FILES[file], ownGroups: () => [1000, 3000] }

test('a group is as good as its user where nobody else is in it', () => {
  const seen = Object.fromEntries([0, 1000, 50, 2000, 3000].map((gid) => [gid, hasOthers(gid, [1000], inFiles)]))
  assert.deepEqual(seen, { 0: false, 1000: false, 50: false, 2000: false, 3000: false })
})

test('others are in a group by name, as their own one, or as nobody can tell who is', () => {
  const seen = Object.fromEntries([100, 2001, 2002, 4000].map((gid) => [gid, hasOthers(gid, [1000], inFiles)]))
  assert.deepEqual(seen, { 100: true, 2001: true, 2002: true, 4000: true })
  assert.equal(hasOthers(1000, [1001], inFiles), true, 'somebody else\'s own')
  assert.equal(hasOthers(1000, [1001, 1000], inFiles), false, 'who is trusted')
})

test('without these files the groups of this process are its own', () => {
  const nothing = { ...inFiles, read: () => '' }
  assert.deepEqual([3000, 4000].map((gid) => hasOthers(gid, [1000], nothing)), [false, true])
})
