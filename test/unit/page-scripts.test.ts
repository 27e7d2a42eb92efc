import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { joinModules } from '../../build/page-scripts.ts'

function run (files: Record<string, string>, libraries?: Record<string, string>) {
  const { source } = joinModules('entry.js', (name) => files[name], { libraries })
  const said = [] as unknown[]
  // As text: an array of another context is not one of ours.
  runInNewContext(source, { say: (word: unknown) => said.push(JSON.parse(JSON.stringify(word))) })
  return said
}

test('a module runs with all that it imports, each once and in its own scope', () => {
  const said = run({
    'entry.js':
      'import Line from \'./line.js\'\nimport { first as one, LIMIT } from \'./a.js\'\nimport \'./effect.js\'\nconst own = 1\n/** @type {string} */\nsay([own, one(), LIMIT, Line])\n',
    'a.js':
      'import \'./effect.js\'\n// why\nconst own = 2\nexport const LIMIT = 3\nexport function first () { return own }\n',
    'effect.js': 'say(\'effect\')\n',
    'line.js': 'var line = \'library\''
  }, { 'line.js': 'line' })
  assert.deepEqual(said, ['effect', [1, 2, 3, 'library']])
})

test('a script brings nothing that one before it has brought', () => {
  const files: Record<string, string> = { 'first.js': 'import { word } from \'./word.js\'\nsay([\'first\', word()])\n',
    'second.js':
      'import { word } from \'./word.js\'\nimport { more } from \'./more.js\'\nsay([\'second\', word(), more()])\n',
    'word.js': 'say(\'word\')\nexport function word () { return \'one\' }\n',
    'more.js': 'import { word } from \'./word.js\'\nexport function more () { return word() + \' more\' }\n' }
  const read = (name: string) => files[name]
  const first = joinModules('first.js', read)
  const second = joinModules('second.js', read, { held: first.modules })
  const said = [] as unknown[]
  runInNewContext([first, second].map(inScope).join('\n'), {
    say: (word: unknown) => said.push(JSON.parse(JSON.stringify(word)))
  })
  assert.deepEqual(said, ['word', ['first', 'one'], ['second', 'one', 'one more']])
  assert.ok(!second.source.includes('say(\'word\')'))
})

/** Scripts of a page do not share their constants. */
function inScope ({ source }: { source: string }) {
  return `{${source}\n}`
}

test('whoever loads it later gets what the module exports', () => {
  assert.match(joinModules('entry.js', () => 'export function open () {}\nexport const LIMIT = 1\n').source,
    /\nexport const \{ open, LIMIT \} = module0$/)
})

test('a form of import or export that it does not know is refused, and not left out', () => {
  for (const line of ['import * as all from \'./a.js\'', 'export default 1', 'export { a } from \'./a.js\'']) {
    assert.throws(() => run({ 'entry.js': `${line}\n`, 'a.js': '' }), {
      message: `entry.js: expected imports and exports as of the other files, received ${line}`
    })
  }
})
