import{nt as e,rt as t}from"./page.js";const n=({url:e})=>{let t=new URL(e,location.origin);return t.pathname.endsWith(`/`)||(t.pathname+=`/`),t};function r(t){let[n=``,r]=location.pathname.slice(e.length).split(`/`);return t.href+n+(r?``:location.search)}function i({engines:i}){let a=i.map(n),o=a.findIndex(t=>t.origin===location.origin&&t.pathname===e);return t`
    <label class="engines"><span class="dim">Engine</span>
      <select value=${String(o)} title="The same screen of another engine" onChange=${e=>{let t=a[Number(e.target.value)];e.target.value=String(o),t&&location.assign(r(t))}}>
        ${o<0&&t`<option value="-1">this one</option>`}
        ${i.map(({name:e},n)=>t`<option key=${e} value=${String(n)} selected=${n===o}>${e}</option>`)}
      </select></label>`}export{i as Engines};