import { z, type ZodType } from 'zod'
import { PROBLEMS, type ErrorCode } from '../errors.ts'
import { operation, type Operation, type Resource } from './endpoint.ts'
import { ID_PARAMETER } from './fields.ts'
import { IDEMPOTENCY_KEY } from './idempotency.ts'

/** The API as an OpenAPI 3.1 document, made from the operations themselves. */
export type Schema = { [key: string]: unknown, $ref?: string, type?: string, format?: string, description?: string,
  properties?: Record<string, Schema>, required?: string[], items?: Schema, anyOf?: Schema[], enum?: unknown[],
  minimum?: number, maximum?: number, examples?: unknown[] }
type Content = Record<string, { schema: Schema }>
export type Parameter = { name: string, in: string, required: boolean, description?: string, schema: Schema }
export type Described = { operationId: string, tags: string[], summary: string, description?: string,
  security?: object[], 'x-role': string, 'x-cli'?: string | object, parameters: Parameter[],
  requestBody?: { required: boolean, content: Record<string, { schema?: Schema }> },
  responses: Record<string, { $ref?: string, content?: Content }> }
export type Components = { securitySchemes: object, schemas: Record<string, Schema>,
  responses: Record<string, { description: string, headers?: object, content: Content }> }
export type Document = { openapi: string, info: object, servers: object[], security: object[],
  tags: { name: string, description: string }[], paths: Record<string, Record<string, Described>>,
  components: Components }
type Group = { about: string, resources: Record<string, Resource> }
export type Mount = {
  base: string,
  /** parameters of the base */
  path?: Record<string, ZodType>,
  /** that any of its operations may have, beside the usual ones */
  problems?: readonly ErrorCode[],
  groups: Record<string, Group>
}

const JSON_TYPE = 'application/json'
/** Fields that the schemas of the configuration have for its own use. */
const OF_OPTIONS = ['kind', 'hint', 'expected', 'separator']
const PROBLEM_TYPE = 'application/problem+json'

/** Errors that every operation may answer. */
const ANYWHERE: readonly ErrorCode[] = ['bad-request', 'unauthenticated', 'forbidden', 'not-acceptable', 'rate-limited',
  'internal', 'history-unavailable', 'invalid-query']
/** Errors of operations that need no sign-in. */
const ANYWHERE_PUBLIC: readonly ErrorCode[] = ['bad-request', 'forbidden', 'internal', 'invalid-query']
const WITH_BODY: readonly ErrorCode[] = ['invalid-json', 'payload-too-large', 'unsupported-media-type', 'invalid-body']
const OF_POSTS: readonly ErrorCode[] = ['idempotency-key-in-use', 'idempotency-key-reused']
/** Every POST has these, beside its own. */
const POST_HEADERS = { 'Idempotency-Key': IDEMPOTENCY_KEY.optional() }

const PROBLEM = z.looseObject({ type: z.string().describe('urn:clusterdeck:problem: and the code'), title: z.string(),
  status: z.int().min(400).max(599),
  detail: z.string().describe('one sentence: what was expected and what was received'),
  code: z.enum(Object.keys(PROBLEMS)),
  errors: z.array(z.strictObject({ path: z.string(), expected: z.string(), received: z.string() })).optional().describe(
    'what is wrong with a query or a body'
  ), rollout: z.int().optional().describe('the rollout that prevents it') }).meta({ id: 'Problem',
    description: 'An error (RFC 9457). `code` is stable.',
    examples: [{ type: 'urn:clusterdeck:problem:rollout-running', title: 'A rollout is running', status: 409,
      detail: 'rollout 7 (deploy) is running', code: 'rollout-running', rollout: 7 }] })

export function openapiResources (describe: () => object): Record<string, Resource> {
  return {
    '/openapi.json': {
      GET: operation({ name: 'getOpenapi', summary: 'Returns this API as an OpenAPI 3.1 document', role: 'viewer',
        answer: z.looseObject({ openapi: z.string() }), handle: () => ({ body: describe() }) })
    }
  }
}

export function describeApi (mounts: readonly Mount[],
  { version, url = '/' }: { version: string, url?: string }): Document
{
  const schemas: Record<string, Schema> = {}
  const toSchema = createConverter(schemas)
  const toProblems = createProblems(toSchema)
  const tagged = mounts.flatMap(({ base, path: parameters = {}, problems = [], groups }) => {
    return Object.entries(groups).map(([tag, { resources }]) => ({ base, parameters, problems, tag, resources }))
  })
  const paths = tagged.flatMap(({ base, parameters, problems, tag, resources }) =>
    Object.entries(resources).map(([path, resource]) => {
      const operations = Object.entries(resource).map((
        [method, operation]
      ) => [method.toLowerCase(),
        describeOperation({ ...operation, path: { ...parameters, ...operation.path },
          problems: [...problems, ...operation.problems ?? []] }, { path, method, tag, toSchema,
          toProblems: toProblems.refer })]
      )
      return [`${base === '/' ? '' : base}${path}`.replace(/[:*](\w+)/g, '{$1}'), Object.fromEntries(operations)]
    })
  )
  return { openapi: '3.1.1',
    info: { title: 'clusterdeck', version, license: { name: 'MIT', identifier: 'MIT' },
      description:
        'The admin API of one clusterdeck master. Times are ISO 8601 in UTC, durations end in `Ms`, sizes in `Bytes`. Lists are newest first.' },
    servers: [{ url, description: 'the admin port' }], security: [{ token: [] }],
    tags: mounts.flatMap(({ groups }) => Object.entries(groups)).map(([name, { about }]) => ({ name,
      description: about })
    ), paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer',
          description: '`admin.token` of the data folder, or a token of your own' }
      },
      responses: toProblems.described,
      schemas: Object.fromEntries(
        Object.entries(schemas).sort(([a], [b]) => a < b ? -1 : 1).map((
          [name, schema]
        ) => [name, { ...schema, examples: [exampleOf(schema, schemas)] }])
      )
    } }
}

function describeOperation (operation: Operation,
  { path, method, tag, toSchema, toProblems }: { path: string, method: string, tag: string,
    toSchema: ReturnType<typeof createConverter>, toProblems: ReturnType<typeof createProblems>['refer'] }): Described
{
  const { name, summary, description, role, byToken, cli, body, shownBody, takes, status = 200, location, hasTag,
    answer, others = {}, problems = [] } = operation
  const hasId = path.includes(':id')
  const codes: ErrorCode[] = [...ANYWHERE, ...(method === 'GET' ? [] : WITH_BODY),
    ...(method === 'POST' ? OF_POSTS : [])]
  if (operation.query?.shape.cursor) codes.push('cursor-expired')
  if (path.includes(':')) codes.push('invalid-id')
  codes.push(...problems)
  return { operationId: name, tags: [tag], summary, ...(description && { description }),
    ...(role === null && { security: [] }), 'x-role': role ?? 'anyone', ...(byToken && { 'x-by-token': true }),
    ...(cli && { 'x-cli': cli }),
    parameters: [...(hasId ? [toParameter('id', 'path', ID_PARAMETER, toSchema)] : []),
      ...Object.entries(operation.path ?? {}).map(([key, schema]) => toParameter(key, 'path', schema, toSchema)),
      ...Object.entries(operation.query?.shape ?? {}).map(([key, schema]) =>
        toParameter(key, 'query', schema, toSchema)
      ),
      ...Object.entries({ ...operation.headers, ...(method === 'POST' && POST_HEADERS) }).map(([key, schema]) =>
        toParameter(key, 'header', schema, toSchema)
      )],
    ...(body &&
      {
        requestBody: { required: !body.safeParse({}).success,
          content: { [JSON_TYPE]: { schema: toSchema(shownBody ?? body, 'input') } } }
      }), ...(takes && { requestBody: { required: true, content: { [takes]: {} } } }),
    responses: {
      [status]: { description: summary,
        ...((location || hasTag) &&
          {
            headers: {
              ...(location &&
                {
                  Location: { description: 'the path of what was created', required: true,
                    schema: { type: 'string', format: 'uri-reference' } }
                }),
              ...(hasTag &&
                {
                  ETag: { description: 'the tag of this state, for `If-Match`', required: true,
                    schema: { type: 'string' } }
                })
            }
          }), content: contentOf(answer, toSchema) },
      ...Object.fromEntries(
        Object.entries(others).map((
          [other, types]
        ) => [other, { description: 'Another answer', content: contentOf(types, toSchema) }])
      ),
      ...toProblems(role === null ? [...ANYWHERE_PUBLIC, ...problems] : codes)
    } }
}

function contentOf (answer: Operation['answer'], toSchema: ReturnType<typeof createConverter>) {
  const byType = answer instanceof z.ZodType ? { [JSON_TYPE]: answer } : answer
  return Object.fromEntries(
    Object.entries(byType).map(([type, schema]) => [type, { schema: toSchema(schema, 'output') }])
  )
}

/** Error answers by status; many operations share them. */
function createProblems (toSchema: ReturnType<typeof createConverter>) {
  const problem = toSchema(PROBLEM, 'output')
  /** by the codes that they may have */
  const described: Components['responses'] = {}

  return { described, refer (codes: readonly ErrorCode[]): Described['responses'] {
    const byStatus: Map<number, ErrorCode[]> = new Map()
    for (const code of new Set(codes)) {
      const { status } = PROBLEMS[code]
      byStatus.set(status, [...byStatus.get(status) ?? [], code])
    }
    return Object.fromEntries([...byStatus].map(([status, each]) => [status, describeProblem(status, each)]))
  } }

  function describeProblem (status: number, codes: ErrorCode[]) {
    const name = codes.join('.')
    described[name] ??= { description: codes.map((code) => PROBLEMS[code].title).join('; '),
      ...((status === 429 || status === 503) &&
        { headers: { 'Retry-After': { description: 'seconds', schema: { type: 'integer', minimum: 0 } } } }),
      content: { [PROBLEM_TYPE]: { schema: { ...problem, properties: { code: { enum: codes } } } } } }
    return { $ref: `#/components/responses/${name}` }
  }
}

function toParameter (name: string, place: 'path' | 'query' | 'header', schema: z.ZodType,
  toSchema: ReturnType<typeof createConverter>)
{
  const { description, ...type } = toSchema(schema, 'input')
  return { name, in: place, required: !schema.safeParse(undefined).success, ...(description && { description }),
    schema: type }
}

/** `schema`: of arguments @returns as JSON Schema, whole */
export function argumentsSchemaOf (schema: z.ZodObject): Schema {
  return createConverter({})(schema, 'input')
}

/** Describes a named schema once, among the components. `components`: filled by the way. */
function createConverter (components: Record<string, Schema>) {
  return (schema: z.ZodType, io: 'input' | 'output'): Schema => {
    const { $schema: _, $defs = {}, ...converted } = inComponents(
      z.toJSONSchema(schema, { io, unrepresentable: 'any', override: simplifySchema })
    )
    Object.assign(components, $defs)
    return converted
  }
}

function inComponents (schema: object) {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'))
}

/** A parameter is text; `as` describes the value that it is read as. */
function simplifySchema (
  { zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType, jsonSchema: z.core.JSONSchema.BaseSchema }
) {
  const as = z.globalRegistry.get(zodSchema)?.as
  if (as) {
    for (const key of Object.keys(jsonSchema)) if (key !== 'description') delete jsonSchema[key]
    Object.assign(jsonSchema, as)
  }
  for (const key of OF_OPTIONS) delete jsonSchema[key]
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
}

/** Makes an example from a JSON Schema: its own example, else the simplest value that it allows. `components`: by name, what the schema refers to. */
function exampleOf (schema: Schema, components: Record<string, Schema>): unknown {
  const { $ref, examples, anyOf, enum: values, type } = schema
  if (examples) return examples[0]
  if ('const' in schema) return schema.const
  if (values) return values[0]
  if ($ref) return exampleOf(components[$ref.slice($ref.lastIndexOf('/') + 1)], components)
  if (anyOf) return exampleOf(anyOf.find((each) => each.type !== 'null') ?? {}, components)
  if (type === 'array') return [exampleOf(schema.items ?? {}, components)]
  if (type === 'object')
    return Object.fromEntries(
      Object.entries(schema.properties ?? {}).map(([key, each]) => [key, exampleOf(each, components)])
    )
  return simplestValue(schema)
}

function simplestValue ({ type, format, minimum = 0 }: Schema) {
  if (format === 'date-time') return '2026-01-31T12:00:00.000Z'
  if (format === 'uri') return 'http://127.0.0.1:9777/'
  if (type === 'integer' || type === 'number') return minimum
  if (type === 'boolean') return false
  return type === 'string' ? 'text' : null
}
