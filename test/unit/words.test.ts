import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { manualPage } from '../../server/manual.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const SEARCHED = ['server', 'workers', 'db', 'public', 'views']

/** What the glossary has another word for. */
const BANNED: readonly [banned: RegExp, instead: string, of?: RegExp][] = Object.freeze([[/\bengine\b(?!\.io|\.close)/i,
  'NATS', /fleet/], [/\bconductor\b/i, 'member runtime'], [/\bledger\b/i, 'rollout store'], [/\bautops(y|ies)\b/i,
  'exit evidence'], [/\bnonsense\b/i, 'what is no message'], [/\bmilestone\b/i, 'deferred'], [/\binsides\b/i,
  'member cache'], [/\b(take|takes) it up\b|\btakeUp\b/, 'mark it as ready'], [/\bhalt(s|ed|ing)?\b/i, 'hold, held'], [
  /awaits? an operator|stands? still/i,
  'held'
], [/\bunblocked?\b/i, 'no longer held'], [/\baborting\b/i, 'rolling back'], [/on-failure[^\n]{0,12}roll-back/,
  'rollback']])

test('code, pages and manual use no word that the glossary has another one for', () => {
  const found = [...SEARCHED.flatMap(filesBelow), 'README.md'].flatMap((file) => {
    const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n')
    return BANNED.filter(([, , of]) => !of || of.test(file)).flatMap((
      [banned, instead]
    ) => [...(banned.test(path.basename(file)) ? [`the name of ${file}: ${instead}`] : []),
      ...lines.flatMap((line, index) =>
        banned.test(line) ? [`${file}:${index + 1}: ${banned.exec(line)?.[0]}, say ${instead}`] : []
      )]
    )
  })
  assert.deepEqual(found, [])
})

test('the glossary has each word once, and at least thirty', () => {
  const words = [...String(manualPage('glossary')).matchAll(/^\| ([^|]+) \| [^|]+\. \|$/gm)].flatMap(([, cell]) =>
    cell.split(', ')
  )
  assert.ok(words.length >= 30, `${words.length}`)
  assert.equal(new Set(words).size, words.length)
})

/** @returns texts below it */
function filesBelow (folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    !name.includes('node_modules/') && /\.(c?js|eta|md|sql)$/.test(name)
  ).map((name) => path.join(folder, name))
}
