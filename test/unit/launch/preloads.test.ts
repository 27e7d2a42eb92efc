import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leavePreloads, restoreNodeOptions } from '../../../server/cli/node-options.ts'
import { withPreload } from '../../../server/cluster/preload.ts'
import { withoutPreloads } from '../../../server/launch/preloads.ts'
import { rows } from '../../support/rows.ts'

test('of NODE_OPTIONS remains what loads nothing', () => {
  for (const [whole, rest] of rows(String.raw`
    --max-old-space-size=400  --no-deprecation             → --max-old-space-size=400  --no-deprecation
    -r a.cjs                                               →
    --require a.cjs --max-old-space-size=400               → --max-old-space-size=400
    --no-deprecation --import=file:///a.mjs --title "my app"                   → --no-deprecation --title "my app"
    --experimental-loader a.mjs --experimental_loader=b.mjs --loader c.mjs     →
    --require "/with spaces/and \"quotes\"/a.cjs" --title=--require            → --title=--require
    "--require" "a b.cjs" --no-deprecation                 → --no-deprecation
    --require                                              →
  `, '→')) assert.equal(withoutPreloads(whole), rest)
  assert.equal(withoutPreloads(''), '')
})

test('a command begins anew without what NODE_OPTIONS loads, once, and its children get all of it', () => {
  let begun = 0
  const said: string[] = []
  const parts = { again: () => Boolean(++begun), say: (line: string) => {
    said.push(line)
  } }
  const env: Record<string, string | undefined> = { NODE_OPTIONS: '-r a.cjs --no-deprecation' }
  leavePreloads(env, parts)
  assert.deepEqual([begun, env.NODE_OPTIONS], [1, '--no-deprecation'])
  leavePreloads(env, parts)
  assert.equal(begun, 1)
  restoreNodeOptions(env)
  assert.deepEqual(env, { NODE_OPTIONS: '-r a.cjs --no-deprecation' })
  assert.deepEqual(said, [])
  leavePreloads(env, { ...parts, again: () => false })
  assert.match(said.join(), /^NODE_OPTIONS: its preloads run here too.* koffi/)
})

test('a worker loads its own part before all that the user loads, and tells where that ends', () => {
  const last = /^--import file:.*\/dist\/preload\.js$/
  const plain = withPreload({ execArgv: ['-r', 'a.cjs'], nodeOptions: undefined })
  assert.match(plain.execArgv.join(' '), /^--require \S+\/dist\/preload\.cjs -r a\.cjs$/)
  assert.deepEqual([plain.nodeOptions, plain.hasImports], [undefined, false])
  const both = withPreload({ execArgv: ['--import', 'a.mjs'], nodeOptions: '-r b.cjs' })
  assert.match(both.execArgv.slice(4).join(' '), last)
  assert.match(String(both.nodeOptions), /^--require ".+\/dist\/preload\.cjs" -r b\.cjs$/)
  assert.equal(both.hasImports, true)
})

test('Yarn\'s Plug\'n\'Play alone comes before a worker\'s own part, wherever the user has it', () => {
  const words = withPreload({
    execArgv: ['-r', 'a.cjs', '--require', '/shop/.pnp.cjs', '--experimental-loader', 'l.mjs'],
    nodeOptions: undefined
  })
  assert.match(words.execArgv.join(' '),
    /^--require \/shop\/\.pnp\.cjs --require \S+\/dist\/preload\.cjs -r a\.cjs --experimental-loader l\.mjs$/)
  const variable = withPreload({ execArgv: ['-r', 'a.cjs'],
    nodeOptions: '--no-deprecation --require "/my shop/.pnp.cjs" -r b.cjs' })
  assert.match(String(variable.nodeOptions),
    /^--require "\/my shop\/\.pnp\.cjs" --require ".+\/dist\/preload\.cjs" --no-deprecation -r b\.cjs$/)
  const both = withPreload({ execArgv: ['--require=/shop/.pnp.cjs'], nodeOptions: '-r b.cjs' })
  assert.match(String(both.nodeOptions),
    /^"--require=\/shop\/\.pnp\.cjs" --require ".+\/dist\/preload\.cjs" -r b\.cjs$/)
  for (const nodeOptions of ['-r /shop/my.pnp.cjs', '--title /shop/.pnp.cjs'])
    assert.match(String(withPreload({ execArgv: [], nodeOptions }).nodeOptions),
      /^--require ".+\/dist\/preload\.cjs" -/)
})
