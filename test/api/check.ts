// The API held against its own description, from outside: `npm run api:check`, or `npm run api:check -- --schemathesis
// PATH --max-examples 50` Redocly lints the description. Schemathesis calls every operation as each role, on a port
// without processes behind it.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { ROLES, type Role } from '../../server/api/roles.ts'
import { tempFolder } from '../support/folder.ts'
import { openPort, tameServer } from './port.ts'
import { findSchemathesis, fuzz, lint } from './tools.ts'

type Row = { role: string, operations: string, cases: number, failures: number, seconds: number }

const { values: { schemathesis: named, 'max-examples': maxExamples } } = parseArgs({
  options: { schemathesis: { type: 'string' }, 'max-examples': { type: 'string', default: '10' } }
})
const program = await findSchemathesis(named)
// Whatever they leave behind goes with it.
const cwd = tempFolder()
tameServer()
const isValid = await lintDescription()
const rows: Row[] = []
for (const role of ROLES) rows.push(await callAs(role))
console.table(rows)
process.exitCode = isValid && rows.every(({ failures }) => failures === 0) ? 0 : 1

async function lintDescription (): Promise<boolean> {
  const port = await openPort()
  const file = path.join(cwd, 'openapi.json')
  const response = await fetch(`${port.url}/api/v1/openapi.json`, {
    headers: { authorization: `Bearer ${port.tokens.viewer}` }
  })
  writeFileSync(file, JSON.stringify(await response.json(), null, 2))
  await port.close()
  const { code, output } = await lint(file, { cwd })
  console.log(code === 0 ? output.slice(output.indexOf('validating')).trim() : output)
  return code === 0
}

async function callAs (role: Role): Promise<Row> {
  const startedAt = performance.now()
  const port = await openPort()
  const report = path.join(cwd, `${role}.json`)
  const { code, output } = await fuzz(program, { url: port.url, token: port.tokens[role], report,
    maxExamples: Number(maxExamples), cwd })
  await port.close()
  if (code !== 0 || port.errors.length > 0) console.log([output, ...port.errors].join('\n'))
  if (code === null || code > 1) throw new Error(`schemathesis: expected exit code 0 or 1, received ${code}`)
  const { operations, test_cases: cases, errors } = JSON.parse(readFileSync(report, 'utf8'))
  return { role, operations: `${operations.tested} of ${operations.total}`, cases: cases.generated,
    failures: cases.unique_failures + errors.length + port.errors.length,
    seconds: Math.round((performance.now() - startedAt) / 1000) }
}
