import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { bundleModules } from '../../../server/dashboard/bundle.js'

/** @param {Record<string, string>} files @param {Record<string, string>} [libraries] */
function run (files, libraries) {
  const source = bundleModules('entry.js', (name) => files[name], libraries)
  const said = /** @type {unknown[]} */ ([])
  // As text: an array of another context is not one of ours.
  runInNewContext(source, { say: (/** @type {unknown} */ word) => said.push(JSON.parse(JSON.stringify(word))) })
  return said
}

test('a module runs with all that it imports, each once and in its own scope', () => {
  const said = run({
    'entry.js': "import Line from './line.js'\nimport { first as one, LIMIT } from './a.js'\nimport './effect.js'\nconst own = 1\n/** @type {string} */\nsay([own, one(), LIMIT, Line])\n",
    'a.js': "import './effect.js'\n// why\nconst own = 2\nexport const LIMIT = 3\nexport function first () { return own }\n",
    'effect.js': "say('effect')\n",
    'line.js': "var line = 'library'"
  }, { 'line.js': 'line' })
  assert.deepEqual(said, ['effect', [1, 2, 3, 'library']])
})

test('whoever loads it later gets what the module exports', () => {
  assert.match(bundleModules('entry.js', () => 'export function open () {}\nexport const LIMIT = 1\n'), /\nexport const \{ open, LIMIT \} = module0$/)
})

test('a form of import or export that it does not know is refused, and not left out', () => {
  for (const line of ["import * as all from './a.js'", 'export default 1', "export { a } from './a.js'"]) {
    assert.throws(() => run({ 'entry.js': `${line}\n`, 'a.js': '' }), { message: `entry.js: expected imports and exports as of the other files, received ${line}` })
  }
})
