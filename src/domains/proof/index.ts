export { type ProofDeps, proofTools } from './tools.ts';
