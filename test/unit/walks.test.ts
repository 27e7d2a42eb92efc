import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const steps = readFileSync(new URL('server/WALKS.md', root), 'utf8').split('\n').filter((line) => /^\d+\. /.test(line))

/** `name`: as a walk has it: below server/, or from the top */
function fileOf (name: string) {
  const [own, top] = [new URL(`server/${name}`, root), new URL(name, root)]
  return existsSync(own) ? own : top
}

test('every file of a walk is there, and every function that a step names is in a file of its walk', () => {
  assert.ok(steps.length > 40)
  let texts: string[] = []
  for (const step of steps) {
    if (step.startsWith('1. ')) texts = []
    const names = Array.from(step.matchAll(/`([^`]+)`/g), ([, name]) => name)
    for (const name of names.filter((each) => /^[\w/.-]+\.(ts|js|cjs|eta)$/.test(each))) {
      assert.ok(existsSync(fileOf(name)), `${name}: no such file (${step})`)
      texts.push(readFileSync(fileOf(name), 'utf8'))
    }
    for (const name of names.filter((each) => /^[a-z]+([A-Z][a-z]+)+$/.test(each))) {
      assert.ok(texts.some((text) => text.includes(name)), `${name}: in none of its files (${step})`)
    }
  }
})
