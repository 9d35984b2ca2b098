// Stands in for the SDK's platform shims. A server with tools only never validates JSON Schema: it asks no client for input.
export { default as process } from 'node:process';

export class DefaultJsonSchemaValidator {
  getValidator() {
    throw new Error(
      'Colibri was bundled without a JSON Schema validator, because nothing in it should ask for one',
    );
  }
}
