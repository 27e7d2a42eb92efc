import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesOf, commandWords, millisecondsOf, wordsOf } from '../../../server/import/values.ts'
import { rows } from '../../support/rows.ts'

test('words are those of PM2', () => {
  for (const [given, words] of rows(String.raw`
    "run serve"                    → ["run", "serve"]
    "  a\t\"b c\"  "               → ["a", "b c"]
    "--a='b c' 'd e'"              → ["--a='b c'", "d e"]
    "--a=\"b c\""                  → ["--a=\"b c\""]
    "\"\" a"                       → ["a"]
    "\"open"                       → ["\"open"]
    ["a b", 1, true, {}, null]     → ["a b", "1", "true"]
    {}                             → []
  `, '→')) assert.deepEqual(wordsOf(JSON.parse(given)), JSON.parse(words), given)
})

test('a line is one program, or takes a shell', () => {
  for (const [line, words] of rows(String.raw`
    npm run serve -- --port 80                → ["npm", "run", "serve", "--", "--port", "80"]
    A=1 node "my app.js" '$x|' a\ b ""        → ["A=1", "node", "my app.js", "$x|", "a b", ""]
    node "say \"hi\"" x"y"z                   → ["node", "say \"hi\"", "xyz"]
    node a.js | cat                           → null
    node "$HOME/a.js"                         → null
    node $HOME/a.js                           → null
    cd app && npm start                       → null
    node *.js                                 → null
    node "open                                → null
  `, '→')) assert.deepEqual(commandWords(line), JSON.parse(words), line)
  assert.deepEqual(commandWords(''), [])
})

test('sizes and times are read with their units, and nothing else is', () => {
  assert.deepEqual(['300M', '1G', '2.5k', '512', 512, '10MB'].map(bytesOf), [314_572_800, 1024 ** 3, 2560, 512, 512,
    10 * 1024 ** 2])
  assert.deepEqual(['10s', '2m', '1h', '250ms', 3000, '3000'].map(millisecondsOf), [10_000, 120_000, 3_600_000, 250,
    3000, 3000])
  for (const value of ['', 'M', '-1', '1e3', '1 week', null, {}, NaN, Infinity])
    assert.deepEqual([bytesOf(value), millisecondsOf(value)], [null, null])
})
