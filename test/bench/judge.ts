// How often the judge rolls back a deploy of the same code, and how often it finds one that is worse: npm run judge.
// With a path of another judge.ts as argument: of that one.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { countFound, listRolledBack } from '../support/judged-deploys.ts'

const RUNS = 10_000
const { createJudge } = await import(
  process.argv[2] ? pathToFileURL(path.resolve(process.argv[2])).href : '../../server/releases/judge.ts'
)
const began = performance.now()
const rolledBack = listRolledBack({ from: 1, count: RUNS, make: createJudge })
for (const { seed, message } of rolledBack.slice(0, 10)) console.log(`seed ${seed}: ${message}`)
console.log(`the same code, with an outage of what it needs: ${rolledBack.length} of ${RUNS} deploys rolled back`)
for (const { name, found, tried } of countFound({ count: RUNS / 20, make: createJudge }))
  console.log(`${name}: ${found} of ${tried} found`)
console.log(`${Math.round((performance.now() - began) / 1000)} s`)
process.exitCode = rolledBack.length === 0 ? 0 : 1
