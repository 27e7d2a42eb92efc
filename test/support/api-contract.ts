import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Document } from '../../server/api/openapi.ts'

/** `path`: without the query; `headers`: by their names in small letters */
type Answer = { method: string, path: string, status: number, headers: Record<string, string | string[] | undefined>,
  body: unknown }

type Described = { $ref?: string, headers?: Record<string, { required?: boolean }>,
  content?: Record<string, { schema: object }> }

/** Holds answers of the API against its OpenAPI document. */
export function createContract (document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  // @ts-expect-error its types know only the default export of CommonJS
  addFormats(ajv)
  ajv.addSchema({ $id: 'document', ...document })
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      return { pattern: patternOf(path), path, method: method.toUpperCase(), operation }
    })
  )
  const seen: Set<string> = new Set()

  return {
    /** All, by name. */
    names: operations.map(({ operation }) => operation.operationId),

    /** Those that have answered as they should when all goes well. */
    seen,

    /** `name`: of a component */
    checkShape (name: string, value: unknown) {
      assert.ok(ajv.validate({ $ref: `document#/components/schemas/${name}` }, value),
        `${name}: ${ajv.errorsText(ajv.errors?.slice(0, 5))}`)
    },

    check ({ method, path, status, headers, body }: Answer) {
      const found = operations.find((each) => each.method === method && each.pattern.test(path))
      assert.ok(found, `${method} ${path} is not in the document`)
      const { operation } = found
      const where = `${operation.operationId}: ${status} ${JSON.stringify(body)?.slice(0, 2000)}`
      const answer = resolve(document, operation.responses[status])
      assert.ok(answer, `not in the document: ${where}`)
      const type = String(headers['content-type']).split(';')[0]
      const content = answer.content?.[type]
      assert.ok(content, `${type} is not in the document: ${where}`)
      for (const [name, { required }] of Object.entries(answer.headers ?? {}))
        if (required) assert.ok(headers[name.toLowerCase()], `no ${name}: ${where}`)
      if (type.endsWith('json')) {
        const schema = inDocument(content.schema)
        assert.ok(ajv.validate(schema, body), `${ajv.errorsText(ajv.errors?.slice(0, 5))}: ${where}`)
      }
      if (status < 400) seen.add(operation.operationId)
    }
  }
}

/** `path`: that of another member has slashes */
function patternOf (path: string) {
  return new RegExp(`^${path.replace('{path}', '.+').replace(/\{\w+\}/g, '[^/]+')}$`)
}

function resolve ({ components }: Document, answer: Described | undefined): Described | undefined {
  return answer?.$ref ? components.responses[String(answer.$ref.split('/').at(-1))] as Described : answer
}

/** Its references lead into the document. */
function inDocument (schema: object) {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'))
}
