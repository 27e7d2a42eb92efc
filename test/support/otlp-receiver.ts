import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { serveHttp } from './http-server.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { TestOwner } from './deck.ts'

type Message = Record<string, unknown>
type Attribute = { key: string, value: { stringValue?: string, intValue?: string } }
type Points = { isMonotonic?: boolean, dataPoints: { attributes: Attribute[], asDouble?: number, count?: string }[] }
/** Of a metric, one of the kinds. */
type Metric = { name: string, gauge: Points, sum: Points, histogram: Points, summary: Points }
type LogRecord = { eventName?: string, timeUnixNano: string, body: { stringValue: string }, attributes: Attribute[] }
type Resource = { resource: { attributes: Attribute[] } }
/** One of both, as tests look at it. */
type Request = { resourceMetrics: (Resource & { scopeMetrics: { metrics: Metric[] }[] })[],
  resourceLogs: (Resource & { scopeLogs: { logRecords: LogRecord[] }[] })[] }
type Field = { name: string, number: number, type: string, isRepeated: boolean, oneof: string | null }

const PROTO = readFileSync(new URL('../fixtures/otlp/otlp.proto', import.meta.url), 'utf8')
const { messages, enums } = parseProto(PROTO)
const REQUESTS = { '/v1/metrics': 'ExportMetricsServiceRequest', '/v1/logs': 'ExportLogsServiceRequest' }

/**
 * A collector that takes OTLP/HTTP, as JSON and as protobuf, and refuses with 400 what the definition of the protocol
 * does not have.
 */
export async function startCollector (t: TestOwner) {
  const requests: { path: string, headers: IncomingHttpHeaders, body: Request }[] = []
  /** Answers in turn; then 200. */
  const answers: { status: number, headers?: Record<string, string>, body?: string }[] = []
  const faults: string[] = []
  const { url } = await serveHttp(t, async (request, response) => {
    const chunks = await request.toArray()
    const bytes = Buffer.concat(chunks)
    const { status = 200, headers = {}, body = '{}' } = answers.shift() ?? {}
    try {
      const content = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
      const path = request.url as keyof typeof REQUESTS
      const read = request.headers['content-type'] === 'application/json'
        ? JSON.parse(String(content))
        : decode(REQUESTS[path], content)
      check(REQUESTS[path], read, path)
      if (status === 200) requests.push({ path, headers: request.headers, body: read })
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    } catch (error) {
      faults.push(String(error))
      response.writeHead(400).end()
    }
  })

  return { url, requests, answers, faults,
    logs: () =>
      requests.filter(({ path }) => path === '/v1/logs').flatMap(({ body }) =>
        body.resourceLogs[0].scopeLogs[0].logRecords
      ),
    metrics: () =>
      requests.findLast(({ path }) => path === '/v1/metrics')?.body.resourceMetrics[0].scopeMetrics[0].metrics ?? [] }
}

export function attributesOf (attributes: Attribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? Number(intValue)])
  )
}

function check (type: string, value: unknown, where: string) {
  const fields = messages.get(type)
  if (fields) return checkMessage(fields, value, where)
  if (enums.has(type)) return assert.ok(enums.get(type)?.includes(value as number), `${where}: no ${type}: ${value}`)
  if (type.endsWith('64')) return assert.match(String(value), /^-?\d+$/, where)
  if (type === 'bytes') return assert.match(value as string, /^([0-9a-f]{16}|[0-9a-f]{32})$/, where)
  const expected = type === 'bool' ? 'boolean' : type === 'string' ? 'string' : 'number'
  assert.equal(typeof value, expected, where)
  if (type.endsWith('32')) assert.ok(Number.isInteger(value), where)
}

function checkMessage (fields: Field[], value: unknown, where: string) {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), where)
  const set = Object.keys(value).map((key) =>
    fields.find(({ name }) => name === key) ?? assert.fail(`${where}: no field ${key}`)
  )
  const alternatives = set.flatMap(({ oneof }) => oneof ?? [])
  assert.equal(new Set(alternatives).size, alternatives.length, `${where}: two of ${alternatives}`)
  for (const { name, type, isRepeated } of set) {
    const given = (value as Message)[name]
    if (!isRepeated) check(type, given, `${where}.${name}`)
    else for (const [index, each] of (given as unknown[]).entries()) check(type, each, `${where}.${name}[${index}]`)
  }
}

/** Reads protobuf into what its JSON would be. `type`: of a message. */
export function decode (type: string, bytes: Buffer): Request {
  const message: Message = {}
  let at = 0
  while (at < bytes.length) {
    const key = Number(readVarint())
    const field = messages.get(type)?.find(({ number }) => number === key >> 3) ??
      assert.fail(`${type} has no field ${key >> 3}`)
    const values = readValues(field, key & 7)
    if (field.isRepeated) message[field.name] = [...(message[field.name] ?? []) as unknown[], ...values]
    else message[field.name] = values[0]
  }
  return message as Request

  function readValues ({ type: of }: Field, wireType: number): unknown[] {
    if (wireType === 0) {
      const value = readVarint()
      return [of === 'bool' ? value === 1n : of.endsWith('64') ? String(value) : Number(value)]
    }
    if (wireType === 1) return [read64(of)]
    assert.equal(wireType, 2)
    const end = Number(readVarint()) + at
    assert.ok(end <= bytes.length, `${type} is whole`)
    if (of === 'double' || of === 'fixed64') {
      const packed = []
      while (at < end) packed.push(read64(of))
      return packed
    }
    const content = bytes.subarray(at, at = end)
    return [of === 'string' ? String(content) : of === 'bytes' ? content.toString('hex') : decode(of, content)]
  }

  function read64 (of: string) {
    at += 8
    return of === 'double' ? bytes.readDoubleLE(at - 8) : String(bytes.readBigUInt64LE(at - 8))
  }

  function readVarint () {
    let value = 0n
    for (let shift = 0n;; shift += 7n) {
      const byte = bytes[at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
}

function parseProto (text: string) {
  const messages: Map<string, Field[]> = new Map()
  const enums: Map<string, number[]> = new Map()
  const open: { kind: string, name: string }[] = []
  for (const line of text.split('\n').map((each) => each.trim())) {
    const [, kind, name] = /^(message|enum|oneof|service) (\w+) \{$/.exec(line) ?? []
    const [, label, type, field, place] = /^(repeated |optional )?([\w.]+) (\w+) = (\d+);/.exec(line) ?? []
    const [, number] = /^[A-Z]\w+\s+= (\w+);/.exec(line) ?? []
    const owner = open.findLast((each) => each.kind !== 'oneof')
    if (kind) {
      open.push({ kind, name })
      if (kind === 'message') messages.set(name, [])
      if (kind === 'enum') enums.set(name, [])
    } else if (line === '}') open.pop()
    else if (owner?.kind === 'enum' && number) enums.get(owner.name)?.push(Number(number))
    else if (owner?.kind === 'message' && field) {
      const last = open.at(-1) as { kind: string, name: string }
      messages.get(owner.name)?.push({ name: field.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()),
        number: Number(place), type: String(type.split('.').at(-1)), isRepeated: label === 'repeated ',
        oneof: last.kind === 'oneof' ? last.name : null })
    }
  }
  return { messages, enums }
}
