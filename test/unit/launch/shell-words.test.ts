import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { shownWords, splitWords } from '../../../server/launch/shell-words.ts'

/** What sh(1) makes of it: each word in a line of its own. */
function bySh (text: string) {
  return execFileSync('sh', ['-c', `printf '%s\\n' ${text}`], { encoding: 'utf8' }).split('\n').slice(0, -1)
}

test('splits a command as sh does, and leaves to it what only a shell can do', () => {
  for (const text of ['node app.js', '  node\t--flag=a  "two words" \'single $quoted\' ',
    String.raw`a\ b "c\"d\\e\$f" 'g\h' "i\j"`, '""  "" \'\' x""y', 'node app.js # the server', 'a#b --x=#y',
    'A="1 2"B node', 'node app.js\n', 'node \\\n app.js', 'a~b {x,y} !z'])
    assert.deepEqual(splitWords(text), bySh(text))
  for (const text of ['a | b', 'a || b', 'a && b', 'a & b', 'a; b', 'a\nb', '(a)', 'a > b', 'a 2>&1', 'a < b', 'a $B',
    'a "x$B"', 'a `b`', 'a "`b`"', 'a *.js', 'a ~/b', 'a "b', 'a \'b']) assert.equal(splitWords(text), null, text)
})

test('words are shown so that a shell reads them as they are', () => {
  const words = ['node', '--port=80', 'two words', 'it\'s', '$HOME', '', '*']
  assert.deepEqual(bySh(shownWords(words)), words)
})
