/**
 * The same requests as protobuf, as some receivers of OTLP take no JSON.
 * See https://protobuf.dev/programming-guides/encoding/ and https://github.com/open-telemetry/opentelemetry-proto.
 */
type Scalar = 'string' | 'hex' | 'double' | 'fixed64' | 'varint' | 'doubles' | 'fixed64s'
/** of a message; what is a list in a request is repeated */
type Fields = { [name: string]: [number: number, type: Scalar | Fields] }

const VARINT = 0
const I64 = 1
const LEN = 2

const ATTRIBUTE: Fields = { key: [1, 'string'], value: [2, { stringValue: [1, 'string'], intValue: [3, 'varint'] }] }
const RESOURCE: Fields = { attributes: [1, ATTRIBUTE] }
const SCOPE: Fields = { name: [1, 'string'], version: [2, 'string'] }
const POINT: Fields = { attributes: [7, ATTRIBUTE], startTimeUnixNano: [2, 'fixed64'], timeUnixNano: [3, 'fixed64'] }
const COUNTED: Fields = { count: [4, 'fixed64'], sum: [5, 'double'] }
const NUMBER_POINT: Fields = { ...POINT, asDouble: [4, 'double'] }
const METRIC: Fields = { name: [1, 'string'], description: [2, 'string'], unit: [3, 'string'],
  gauge: [5, { dataPoints: [1, NUMBER_POINT] }],
  sum: [7, { dataPoints: [1, NUMBER_POINT], aggregationTemporality: [2, 'varint'], isMonotonic: [3, 'varint'] }],
  histogram: [9, {
    dataPoints: [1, { ...POINT, ...COUNTED, attributes: [9, ATTRIBUTE], bucketCounts: [6, 'fixed64s'],
      explicitBounds: [7, 'doubles'] }],
    aggregationTemporality: [2, 'varint']
  }], summary: [11, { dataPoints: [1, { ...POINT, ...COUNTED }] }] }
const LOG_RECORD: Fields = { timeUnixNano: [1, 'fixed64'], observedTimeUnixNano: [11, 'fixed64'],
  severityNumber: [2, 'varint'], severityText: [3, 'string'], body: [5, { stringValue: [1, 'string'] }],
  attributes: [6, ATTRIBUTE], traceId: [9, 'hex'], spanId: [10, 'hex'], eventName: [12, 'string'] }
/** A request has either metrics or logs. */
const REQUEST: Fields = {
  resourceMetrics: [1, { resource: [1, RESOURCE], scopeMetrics: [2, { scope: [1, SCOPE], metrics: [2, METRIC] }] }],
  resourceLogs: [1, { resource: [1, RESOURCE], scopeLogs: [2, { scope: [1, SCOPE], logRecords: [2, LOG_RECORD] }] }]
}

/** `request`: as otlp-json.ts makes it */
export function toProtobuf (request: object): Buffer {
  return encodeMessage(REQUEST, request)
}

function encodeMessage (fields: Fields, message: object): Buffer {
  const parts = []
  for (const [name, value] of Object.entries(message)) {
    const [number, type] = fields[name]
    if (typeof type !== 'object') parts.push(...encodeScalar(number, type, value))
    else for (const each of Array.isArray(value) ? value : [value])
        parts.push(...withLength(number, encodeMessage(type, each)))
  }
  return Buffer.concat(parts)
}

function encodeScalar (number: number, type: Scalar, value: unknown): Buffer[] {
  switch (type) {
    case 'string':
      return withLength(number, Buffer.from(String(value)))
    case 'hex':
      return withLength(number, Buffer.from(String(value), 'hex'))
    case 'double':
      return [tag(number, I64), double(Number(value))]
    case 'fixed64':
      return [tag(number, I64), fixed64(String(value))]
    case 'varint':
      return [tag(number, VARINT), varint(BigInt(Number(value)))]
    case 'doubles':
      return withLength(number, Buffer.concat((value as number[]).map(double)))
    case 'fixed64s':
      return withLength(number, Buffer.concat((value as string[]).map(fixed64)))
  }
}

function withLength (number: number, content: Buffer): Buffer[] {
  return [tag(number, LEN), varint(BigInt(content.length)), content]
}

/** `number`: of the field */
function tag (number: number, wireType: number) {
  return varint(BigInt(number << 3 | wireType))
}

/** `value`: from 0 on */
function varint (value: bigint) {
  const bytes = []
  for (; value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128)
  return Buffer.from([...bytes, Number(value)])
}

function double (value: number) {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}

/** `text`: of a whole number */
function fixed64 (text: string) {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(text))
  return bytes
}
